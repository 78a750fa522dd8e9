"""IRC logs as people and bots keep them: stamps, nicks, actions and notices are told from what the server says."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from warmprefix.channel import Channel, Message
from warmprefix.chatlogs.documents import lines
from warmprefix.chatlogs.source import Export, Member, opened
from warmprefix.errors import InputError

LINE = 1 << 16  # characters; the protocol itself allows 512 bytes
SET_BACK = 3600  # seconds that a clock may fall back without a new day: the end of summer time
DAY = 86_400
EPOCH = date(1970, 1, 1).toordinal()
PREFIXES = " @+%&~!"  # rank signs before a nick

_STAMP = re.compile(
    r"(?:\#\ )?[\[(]?"
    r"(?:(?P<date>\d{4}-\d\d-\d\d)[T\ ]|(?P<month>[A-Z][a-z]{2})\ +(?P<dom>\d{1,2})\ (?:(?P<year>\d{4})\ )?)?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?(?:\ ?(?P<half>[AaPp][Mm]))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?[\])]?(?=[ \t]|$)",
    re.VERBOSE,
)
_NICK = r"[^\W\d]|[\[\]\\`_^{|}]"
_SAID = re.compile(r"<([ @+%&~!]?[^\s<>]+)>(?:[ \t](.*))?$", re.DOTALL)
_CUT = re.compile(r"<[^\s<>]*$|\*$")
_DID = re.compile(r"(?:\*|Action:)[ \t]+(\S+)(?:[ \t](.*))?$", re.DOTALL)
_NOTICE = re.compile(rf"-((?:{_NICK})[^\s:/]*)(?:[:/]\S*)?-(?:[ \t](.*))?$", re.DOTALL)
_WEECHAT_NOTICE = re.compile(r"(?:Pv)?Notice\(([^\s)]+)\)(?: -> \S+)?: (.*)$", re.DOTALL)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HEADER = re.compile(
    r"---|\*\*\*\*|===|=-=|Session (?:Start|Time|Ident|Close)|\[?(?:Log|Logfile|Conversation) |-->|<--|-!-|#|\*\*\* "
)
_LONG_DATE = re.compile(
    rf"\b({'|'.join(_MONTHS)})[a-z]*\.? +(\d{{1,2}}),?(?: +[\d:]+)?(?: +[A-Z]{{2,5}})?,? +(\d{{4}})\b"
)
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_NAME_DATE = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)")
_FORMATTING = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9A-Fa-f]{6})?|[\x02\x0f\x11\x16\x1d\x1e\x1f]")

# What a client writes after a single star although nobody did it. Each wants the server's exact words, because people
# also write `* ann has left the building`.
_SERVER = re.compile(
    r"(?:Joins|Parts|Quits): "
    r"|(?:Now talking (?:in|on)|Rejoined channel|Attempting to rejoin|Retrieving) [#&+!\w]"
    r"|Users on [#&+!]|Topic (?:is '|for [#&+!])"
    r"|Set by \S+ (?:on|at) |Disconnected\b|Loaded log from |You are now known as "
    r"|\S+ is now known as \S+\s*$"
    r"|\S+ (?:[\[(]\S*[\])] +)?has (?:joined|left)(?: +[#&+!]\S*|,| *$| +[\[(])"
    r"|\S+ [\[(]\S+@\S+[\])] +(?:has (?:joined|left|quit)|Quit)\b"
    r"|\S+ has quit(?: IRC)? *(?:[\[(]|$)"
    r"|\S+ sets mode:? [+-]"
    r"|\S+ (?:gives|removes) (?:channel (?:half-)?operator status|voice) (?:to|from) "
    r"|\S+ (?:sets|removes) (?:a )?(?:ban|exempt|invite exempt|quiet)s? on "
    r"|\S+ (?:sets|removes) channel (?:keyword|user limit|limit)\b"
    r"|\S+ changes topic to ['\"]|\S+ (?:has )?changed the topic (?:to|of [#&+!]\S+ to): "
    r"|\S+ was kicked by \S+|\S+ (?:has )?kicked \S+ from [#&+!]"
)


@dataclass(slots=True)
class _Clock:
    """Turns stamps into seconds: days since 1970 where the log names one, days since its start where not."""

    day: int = 0
    last: int = -1  # the newest second of this day, -1 where it has none yet

    def begin(self, day: int) -> None:
        if day != self.day:
            self.day, self.last = day, -1

    def read(self, stamp: re.Match[str]) -> float | None:
        hour, minute, second = (int(stamp[part] or 0) for part in ("hour", "minute", "second"))
        if stamp["half"] and 1 <= hour <= 12:
            hour = hour % 12 + 12 * (stamp["half"].lower() == "pm")
        if hour > 24 or minute > 59 or second > 60:
            return None
        now = hour * 3600 + minute * 60 + second
        if (day := _stamped_day(stamp, self.day)) is not None:
            self.day = day
        elif self.last - now > SET_BACK:
            self.day += 1
        self.last = now
        return float(self.day * DAY + now - _offset(stamp["zone"]))


def read(path: str | os.PathLike[str], *, encoding: str | None = None, channel: str | None = None) -> Channel:
    """Read an IRC log, or a folder or zip of logs in path order, as the rows that people and bots wrote.

    Known: `[03:38] <nick> text` with or without seconds, brackets or a date (bots, ZNC, mIRC), irssi, weechat, XChat
    and HexChat. Actions (`* nick text`) and notices (`-nick- text`) are rows that never address anybody; joins, parts,
    quits, renames, modes, topics and every line behind `***`, `===`, `-!-`, `--` are none. Rank signs before a nick are
    dropped. Stamps are often minutes alone, so file order counts; a stamp more than an hour before the last one starts
    a new day. `channel` names the result (by default the file does). Raises `InputError`.
    """
    with opened(path, encoding) as export:
        result = Channel.of(channel or export.stem, _rows(export))
    if not result.messages:
        raise InputError(os.fspath(path), "", "holds no line of an IRC log", "is this the right file and format?")
    return result


def looks_like(head: str) -> bool:
    """Whether a text begins as an IRC log does: most of its first lines carry a stamp or a client's header.

    >>> looks_like("[03:38] <ann> hi"), looks_like("Dear all")
    (True, False)
    """
    first = [line for line in head[:8192].split("\n")[:20] if line and not line.isspace()]
    return sum(bool(_STAMP.match(line) or _HEADER.match(line)) for line in first) * 2 > len(first)


def _rows(export: Export) -> Iterator[Message]:
    clock = _Clock()
    logs = [
        member
        for member in export.members
        if not export.whole or member.name.suffix in (".log", ".txt", ".irc", ".weechatlog", "")
    ]
    for member in logs:
        if (day := _named_day(member.name.name)) is not None:
            clock.begin(day)
        prefix = f"{member.name}:" if export.whole else ""
        yield from _member_rows(export, member, clock, prefix)


def _member_rows(export: Export, member: Member, clock: _Clock, prefix: str) -> Iterator[Message]:
    known, strange = 0, []
    for number, line in lines(export, member, LINE):
        stamp = _STAMP.match(line)
        if stamp is None:
            if (day := _header_day(line)) is not None:
                clock.begin(day)
            if line and not line.isspace() and not _HEADER.match(line.lstrip()):
                strange.append(number)
            continue
        known += 1
        at, row = clock.read(stamp), _row(line[stamp.end() :])
        if at is None:
            raise InputError(member.label, f"line {number}", f"no such time of day: {stamp[0]!r}", "mend the stamp")
        if row is not None:
            nick, kind, text = row
            yield Message(f"{prefix}{number}", nick, text, at, nick, kind=kind)
        elif _CUT.match(line[stamp.end() :].strip()):
            raise InputError(member.label, f"line {number}", "is cut off in the nick", "complete it or drop the line")
    if len(strange) > known:  # a client's odd remark is no fault, a file of them is
        raise InputError(member.label, f"line {strange[0]}", "is no line of an IRC log", "is this the right file?")


def _row(body: str) -> tuple[str, str, str] | None:
    """Nick, kind and text of a line behind its stamp; None for what the server said.

    >>> _row(" <@ann> hi"), _row(" * world overs to unless"), _row(" * world is now known as ping")
    (('ann', 'message', 'hi'), ('world', 'action', 'overs to unless'), None)
    """
    if body.startswith("\t"):  # weechat: stamp, nick and text stand in columns
        nick, tab, text = body[1:].partition("\t")
        mark = nick.strip()
        if mark == "--" and (notice := _WEECHAT_NOTICE.match(text)):
            return _nick(notice[1]), "notice", _plain(notice[2])
        if mark == "*":
            nick, _, text = text.partition(" ")
            return _nick(nick), "action", _plain(text)
        return (
            (_nick(mark), "message", _plain(text)) if tab and mark and mark not in ("--", "-->", "<--", "=!=") else None
        )
    body = body.lstrip()
    if said := _SAID.match(body):
        return _nick(said[1]), "message", _plain(said[2] or "")
    if (did := _DID.match(body)) and not _SERVER.match(body, did.start(1)):
        return _nick(did[1]), "action", _plain(did[2] or "")
    if notice := _NOTICE.match(body):
        return _nick(notice[1]), "notice", _plain(notice[2] or "")
    return None


def _nick(text: str) -> str:
    return sys.intern(_plain(text).lstrip(PREFIXES) or text)


def _plain(text: str) -> str:
    """The text without the bytes that colour it."""
    return text if text.isprintable() else _FORMATTING.sub("", text)


def _stamped_day(stamp: re.Match[str], current: int) -> int | None:
    if stamp["date"]:
        year, month, dom = map(int, stamp["date"].split("-"))
    elif stamp["month"] in _MONTHS:
        month, dom = _MONTHS.index(stamp["month"]) + 1, int(stamp["dom"])
        if not stamp["year"]:
            return _next_day(month, dom, current)
        year = int(stamp["year"])
    else:
        return None
    return _day(year, month, dom)


def _next_day(month: int, dom: int, current: int) -> int | None:
    """A day without its year, less than half a year before the current one: after December comes the next January."""
    year = date.fromordinal(EPOCH + current).year
    days = (_day(each, month, dom) for each in range(year, year + 9))  # a leap day comes at most 8 years later
    return next((day for day in days if day is not None and day > current - 183), None)


def _header_day(line: str) -> int | None:
    """The day that a line such as `--- Day changed Tue Nov 12 2013` announces."""
    if not _HEADER.match(line):
        return None
    if long := _LONG_DATE.search(line):
        return _day(int(long[3]), _MONTHS.index(long[1]) + 1, int(long[2]))
    iso = _ISO_DATE.search(line)
    return _day(*map(int, iso.groups())) if iso else None


def _named_day(name: str) -> int | None:
    """The day in the name of a log that is kept by the day."""
    found = _NAME_DATE.search(name)
    return _day(*map(int, found.groups())) if found else None


def _day(year: int, month: int, dom: int) -> int | None:
    try:
        return date(year, month, dom).toordinal() - EPOCH if 1970 <= year < 3000 else None
    except ValueError:
        return None


def _offset(zone: str | None) -> int:
    if not zone or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
