"""The rules in `_host_record.py` as Redis scripts, each of which is atomic.

Pure: this module only builds the text for the server and parses the replies.

A host's record is text under one key: a hash, followed by the numbers in the order in
which `save` writes them. The server deletes the key when it no longer has any effect.
The time since the record was written is computed from the key's remaining lifetime, so
the scripts need no clock; some servers do not allow scripts to use one. Each host has
its own time, in whole milliseconds, which never goes backwards.

The scripts also preserve the order of arrival. A process that must wait gets a place in
the host's queue and keeps it if it tries again in time. It tries again only when the
processes ahead of it could have had their turns, so there are few calls, however many
processes are waiting.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from robotsgate.politeness._host_record import (
    FIRST_BACK_OFF,
    INCIDENT_MEMORY,
    LONGEST_BACK_OFF,
    SHORTEST_WAIT_FOR_PLACE,
    SLOW_DOWN,
    SMALLEST_SLOWED_DELAY,
    SPEED_UP,
    HostRecord,
    Pace,
)

if TYPE_CHECKING:
    from robotsgate.politeness._host_record import TurnEnd

# The maximum error when a clock with whole milliseconds measures a duration.
TICK = 0.001

# How late a process may try again without losing its place, in seconds.
LATENESS = 1.0

# The maximum wait for the processes ahead in the queue, in seconds: all of them may
# have died.
LONGEST_WAIT_FOR_OTHERS = 60.0

# The expected duration of a turn grows by at most this factor with each turn, so that
# it stays near the minimum: a process that expects long turns tries too late. If
# durations differ by half, this wastes 1 % of the time; with 1.25, it would waste 5 %.
LENGTHENING = 1.05

_NUMBERS = {
    "FIRST_BACK_OFF": FIRST_BACK_OFF,
    "INCIDENT_MEMORY": INCIDENT_MEMORY,
    "LATENESS": LATENESS,
    "LENGTHENING": LENGTHENING,
    "LONGEST_BACK_OFF": LONGEST_BACK_OFF,
    "LONGEST_WAIT_FOR_OTHERS": LONGEST_WAIT_FOR_OTHERS,
    "SHORTEST_WAIT_FOR_PLACE": SHORTEST_WAIT_FOR_PLACE,
    "SLOW_DOWN": SLOW_DOWN,
    "SMALLEST_SLOWED_DELAY": SMALLEST_SLOWED_DELAY,
    "SPEED_UP": SPEED_UP,
    "TICK": TICK,
}

# ARGV: 1: the millisecond at which the time of an unknown host starts, 2: whether the
# request fetches a robots.txt, 3 to 7: the pace.
# If the format changes, the default key prefix must change as well, because processes
# running two different versions may share a server.
_RECORD = """
local NEVER = -math.huge
local FIELDS = {
  'delay', 'max_at_once', 'max_delay', 'max_turn_seconds', 'delay_factor', 'ended_at',
  'fetch_began_at', 'rest_until', 'incident_at', 'blocked_until', 'back_off',
  'slowed_delay',
}
local key, now_ms, is_robots_txt = KEYS[1], tonumber(ARGV[1]), ARGV[2] == '1'
local pace, record, turns, turn_seconds, queue = {}, {}, {}, 0, {}
for number = 1, 5 do pace[FIELDS[number]] = tonumber(ARGV[number + 2]) end

-- So that text from another program is never read, even if it is all numbers.
local function with_hash(text) return redis.sha1hex(text) .. ' ' .. text end

local kept = redis.pcall('GET', key)
local text = type(kept) == 'string' and string.sub(kept, 42)
local is_own = text and kept == with_hash(text)
local is_replaced = kept and not is_own
if is_own then
  local numbers = {}
  for word in string.gmatch(text, '%S+') do numbers[#numbers + 1] = tonumber(word) end
  local at = 0
  local function read()
    at = at + 1
    return numbers[at]
  end
  local written_ms, life_ms = read(), read()
  now_ms = written_ms + math.max(0, life_ms - redis.call('PTTL', key))
  for _, field in ipairs(FIELDS) do record[field] = read() end
  for number = 1, read() do turns[number] = read() end
  turn_seconds = read()
  while at < #numbers do
    queue[#queue + 1] = {process = read(), kept_until = read()}
  end
else
  for number, field in ipairs(FIELDS) do
    record[field] = pace[field] or number < 11 and NEVER or 0
  end
end
local now = now_ms / 1000
-- Others may have sent the host a request a moment ago.
if is_replaced then record.ended_at = now end

-- Stores the record; returns its text and whether it replaces an unreadable record.
local function save()
  local began_at = math.max(record.fetch_began_at, unpack(turns))
  local ended_at = math.max(record.ended_at, began_at + record.max_turn_seconds)
  local forget_at = math.max(
    ended_at + record.max_delay, record.blocked_until + INCIDENT_MEMORY)
  local life_ms = math.max(1, math.ceil((forget_at - now) * 1000))
  local numbers = {now_ms, life_ms}
  local function write(number) numbers[#numbers + 1] = number end
  for _, field in ipairs(FIELDS) do write(record[field]) end
  write(#turns)
  for _, turn in ipairs(turns) do write(turn) end
  write(turn_seconds)
  for _, place in ipairs(queue) do
    write(place.process)
    write(place.kept_until)
  end
  for at, number in ipairs(numbers) do numbers[at] = string.format('%.17g', number) end
  local text = table.concat(numbers, ' ')
  redis.call('SET', key, with_hash(text), 'PX', life_ms)
  return text, is_replaced and 1 or 0
end
"""

# ARGV: 8: the number of the process, 9: whether it remembers the host.
_START = """
local process, is_remembered = tonumber(ARGV[8]), ARGV[9] == '1'
-- The server has lost the record.
if not kept and is_remembered then record.ended_at = now end

-- after_time
local overdue, under_way = 0, {}
local function is_overdue(began_at)
  local end_at = began_at + record.max_turn_seconds
  if began_at == NEVER or end_at > now then return false end
  overdue = overdue + 1
  record.ended_at = math.max(record.ended_at, end_at)
  return true
end
for _, turn in ipairs(turns) do
  if not is_overdue(turn) then under_way[#under_way + 1] = turn end
end
turns = under_way
if is_overdue(record.fetch_began_at) then record.fetch_began_at = NEVER end

-- ready_at
local delay = math.max(pace.delay, record.slowed_delay)
local last_at = math.max(record.ended_at, record.fetch_began_at, unpack(turns))
local moment = math.max(last_at + delay, record.rest_until, record.blocked_until)
local max_at_once = record.back_off > 0 and 1 or pace.max_at_once
local pause = math.max(delay, SHORTEST_WAIT_FOR_PLACE)
if record.fetch_began_at > NEVER or not is_robots_txt and #turns >= max_at_once then
  moment = math.max(moment, now + pause)
end
local seconds = moment + TICK - now

-- A fetch of a robots.txt goes before the pages, which may wait for it.
local others, position = {}, is_robots_txt and 1 or nil
for _, place in ipairs(queue) do
  if place.process == process then
    position = position or #others + 1
  elseif place.kept_until > now then
    others[#others + 1] = place
  end
end
position = position or #others + 1
queue = others

-- At least this much time passes from one turn to the next.
local spacing = TICK
  + math.max(pace.delay, (pace.delay + turn_seconds) / max_at_once)
-- A host that is ready is reserved only for processes that will try again soon.
local is_next = true
for number = 1, position - 1 do
  is_next = is_next and queue[number].kept_until - LATENESS > now + pace.delay
end
local is_granted = seconds <= 0 and is_next
if is_granted then
  -- after_start
  for field, number in pairs(pace) do record[field] = number end
  if is_robots_txt then record.fetch_began_at = now else turns[#turns + 1] = now end
else
  seconds = math.max(seconds, 0)
    + math.min((position - 1) * spacing, LONGEST_WAIT_FOR_OTHERS)
  table.insert(
    queue, position, {process = process, kept_until = now + seconds + LATENESS})
end
return {is_granted and 1 or 0, string.format('%.17g', seconds), overdue, save()}
"""

# ARGV: 8: when the turn started, 9: its duration in seconds, 10: its end,
# 11: retry_after, "" for none, 12: jitter.
_END = """
local began_at, took, how_ended = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]
local retry_after, jitter = tonumber(ARGV[11]), tonumber(ARGV[12])

-- after_end
if is_robots_txt then
  if record.fetch_began_at == began_at then record.fetch_began_at = NEVER end
else
  for place, turn in ipairs(turns) do
    if turn == began_at then
      table.remove(turns, place)
      if how_ended ~= 'unused' then
        local usual = math.max(record.delay, SHORTEST_WAIT_FOR_PLACE)
        local most = turn_seconds > 0 and LENGTHENING * turn_seconds or usual
        turn_seconds = math.min(took, most)
      end
      break
    end
  end
end
if how_ended ~= 'unused' then
  record.ended_at = math.max(record.ended_at, now)
  if record.delay_factor > 0 then
    local rest = math.min(record.delay_factor * took, record.max_delay)
    record.rest_until = math.max(record.rest_until, now + rest)
  end
end

local is_news = began_at > record.incident_at
if how_ended == 'incident' then
  -- after_incident
  local seconds = retry_after or 0
  if is_news then
    local delay = SLOW_DOWN * math.max(record.delay, record.slowed_delay)
    local back_off = math.max(SLOW_DOWN * record.back_off, FIRST_BACK_OFF)
    record.incident_at = now
    record.back_off = math.min(back_off, LONGEST_BACK_OFF)
    record.slowed_delay = math.min(
      math.max(delay, SMALLEST_SLOWED_DELAY), record.max_delay)
    if not retry_after then seconds = record.back_off end
  end
  record.blocked_until = math.max(record.blocked_until, now + seconds * jitter)
elseif how_ended == 'good' and is_news then
  -- _after_good_answer
  record.back_off = 0
  record.slowed_delay = SPEED_UP * record.slowed_delay
  if record.slowed_delay <= record.delay then record.slowed_delay = 0 end
end
return {save()}
"""


class Script:
    """A script and its hash for EVALSHA.

    Attributes:
        text: the Lua code of the script.
        sha1: the SHA-1 of the text, in hexadecimal.
    """

    def __init__(self, rules: str) -> None:
        """Prepend the constants and the code for the record to `rules`."""
        numbers = (f"local {name} = {value!r}\n" for name, value in _NUMBERS.items())
        self.text = "".join([*numbers, _RECORD, rules])
        octets = self.text.encode()
        self.sha1 = hashlib.sha1(octets, usedforsecurity=False).hexdigest()


# Each reply ends with whether the script has replaced an unreadable record.

START = Script(_START)
"""Starts a request or joins the queue; `StartReply` parses the reply."""

END = Script(_END)
"""Ends a request; `record_in` parses the reply."""


class StartReply(NamedTuple):
    """The reply from the `START` script.

    Attributes:
        is_granted: whether the request has started.
        seconds: if the request has not started, how long to wait before retrying, > 0.
        overdue: how many turns have ended because they were overdue.
        now: the host's time, in seconds.
        record: the host's record, with times on the same clock as `now`.
    """

    is_granted: bool
    seconds: float
    overdue: int
    now: float
    record: HostRecord

    @classmethod
    def of(cls, reply: tuple[int, bytes, int, bytes]) -> StartReply:
        """Parse `reply`."""
        is_granted, seconds, overdue, text = reply
        return cls(bool(is_granted), float(seconds), overdue, *record_in(text))


def record_in(text: bytes) -> tuple[float, HostRecord]:
    """The host's time in seconds and its record, from the text returned by a script."""
    now_ms, _, *numbers = map(float, text.split())
    delay, max_at_once, max_delay, max_turn_seconds, delay_factor, *rest = numbers[:12]
    pace = Pace(
        delay=delay,
        max_at_once=int(max_at_once),
        max_delay=max_delay,
        max_turn_seconds=max_turn_seconds,
        delay_factor=delay_factor,
    )
    turns = tuple(numbers[13 : 13 + int(numbers[12])])
    return now_ms / 1_000, HostRecord(pace, rest[0], turns, *rest[1:])  # type: ignore[arg-type]  # 7 numbers


def start_arguments(
    pace: Pace, *, is_robots_txt: bool, now: float, process: int, is_remembered: bool
) -> list[str]:
    """The arguments for `START`.

    Args:
        pace: the host's current pace.
        is_robots_txt: whether the request fetches a robots.txt.
        now: the time at which the clock of an unknown host starts, in seconds; any
            number not used in earlier records of the host.
        process: a number unique to the process, below 2 ** 53.
        is_remembered: whether the process remembers a request to the host.
    """
    common = _common_arguments(pace, is_robots_txt=is_robots_txt, now=now)
    return [*common, str(process), str(int(is_remembered))]


def end_arguments(
    pace: Pace,
    *,
    is_robots_txt: bool,
    now: float,
    began_at: float,
    seconds: float,
    end: TurnEnd,
    retry_after: float | None = None,
    jitter: float = 1.0,
) -> list[str]:
    """The arguments for `END`; see `after_end` and `start_arguments`.

    `seconds` is the turn's duration, since the server may receive its end much later.
    """
    common = _common_arguments(pace, is_robots_txt=is_robots_txt, now=now)
    pause = "" if retry_after is None else repr(retry_after)
    how = "incident" if end.is_incident else end.value
    return [*common, repr(began_at), repr(seconds), how, pause, repr(jitter)]


def _common_arguments(pace: Pace, *, is_robots_txt: bool, now: float) -> list[str]:
    numbers = (
        pace.delay,
        pace.max_at_once,
        pace.max_delay,
        pace.max_turn_seconds,
        pace.delay_factor,
    )
    return [str(int(now * 1_000)), str(int(is_robots_txt)), *map(repr, numbers)]
