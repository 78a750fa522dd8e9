"""What markup says: the text of rendered HTML, the people it mentions, and Markdown without its code."""

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`{1,2})[^`\n]+\1")
_PLAIN = re.compile(r"<p>([^<]*)</p>\s*", re.IGNORECASE)
_BLANK = re.compile(r"\n{3,}")

_BLOCKS = frozenset(
    ["p", "div", "ul", "ol", "li", "blockquote", "pre", "table", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "hr"]
)
_VOID = frozenset(["br", "hr", "img", "input", "meta", "link", "col", "area", "base", "embed", "source", "wbr"])


@dataclass(frozen=True)
class Rendered:
    """A message's HTML as text, and the people it mentions: id to the name shown, the silent ones left out."""

    text: str
    mentions: dict[str, str]


def rendered(markup: str) -> Rendered:
    """Read the HTML that Zulip renders a message to.

    >>> rendered('<p><span class="user-mention" data-user-id="7">@Ann</span> see <code>a&lt;b</code></p>')
    Rendered(text='@Ann see `a<b`', mentions={'7': 'Ann'})
    """
    if plain := _PLAIN.fullmatch(markup):
        return Rendered(html.unescape(plain[1]).strip(), {})
    parser = _Text()
    parser.feed(markup)
    parser.close()
    return Rendered(_BLANK.sub("\n\n", "".join(parser.parts)).strip(), parser.mentions)


def without_code(markdown: str) -> str:
    """Markdown without fenced blocks and code spans, in which nobody is mentioned.

    >>> without_code("ask @ann not `@bob`")
    'ask @ann not '
    """
    if "`" not in markdown and "~~~" not in markdown:
        return markdown
    return _CODE.sub("", _FENCE.sub("", markdown))


@dataclass
class _Text(HTMLParser):
    """Collects text; `hidden` counts the open elements inside one that is not shown."""

    parts: list[str] = field(default_factory=list)
    mentions: dict[str, str] = field(default_factory=dict)
    hidden: int = 0
    preformatted: int = 0
    mentioned: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.hidden:
            self.hidden += tag not in _VOID
            return
        named = {name: value or "" for name, value in attrs}
        classes = named.get("class", "").split()
        if "katex-html" in classes or tag in ("script", "style", "mrow", "semantics-xml"):
            self.hidden = 1  # formulas stand a second time as their source
            return
        self._break(tag)
        if tag == "br":
            self.parts.append("\n")
        elif tag == "li":
            self.parts.append("- ")
        elif tag == "blockquote":
            self.parts.append("> ")
        elif tag == "img" and "emoji" in classes:
            self.parts.append(named.get("alt", ""))
        elif tag in ("td", "th") and not self._at_start():
            self.parts.append(" ")
        elif tag == "pre":
            self.preformatted += 1
            self.parts.append("```\n")
        elif tag == "code" and not self.preformatted:
            self.parts.append("`")
        elif tag == "span" and "user-mention" in classes and "silent" not in classes:
            self.mentioned = named.get("data-user-id", "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.hidden:
            self.hidden -= tag not in _VOID
            return
        if tag == "pre" and self.preformatted:
            self.preformatted -= 1
            self._break(tag)
            self.parts.append("```\n")
        elif tag == "code" and not self.preformatted:
            self.parts.append("`")
        elif tag == "span":
            self.mentioned = ""
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        if self.mentioned.isdecimal():  # a wildcard's id is a star
            self.mentions.setdefault(self.mentioned, data.strip().removeprefix("@"))
            self.mentioned = ""
        if self.preformatted or not data.isspace():
            self.parts.append(data if self.preformatted or not self._at_start() else data.lstrip())
        elif not self._at_start():
            self.parts.append(" ")

    def _at_start(self) -> bool:
        return not self.parts or self.parts[-1].endswith(("\n", "- ", "> "))

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS and not self._at_start():
            self.parts.append("\n")
