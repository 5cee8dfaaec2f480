const SECOND = 1000;
const DAY = 24 * 60 * 60 * SECOND;
/** No zone changes its offset and changes it back within a week. */
const STEP = 7 * DAY;
/** Distance before a requested moment at which the known segments begin anew. */
const MARGIN = 2 * STEP;

/** A period in which the offset of a zone from UTC stays the same. All in ms; times are epoch ms. */
export interface Segment {
  readonly start: number;
  /** Exclusive. The last known segment may continue after it. */
  readonly end: number;
  /** Local time minus UTC. */
  readonly offset: number;
  /** The offset until `start`; the same as `offset` if nothing changed there. */
  readonly before: number;
}

/** The offsets of one time zone. A local time is the epoch ms of the same civil time in UTC. */
export interface Zone {
  /** Returns the segment of this moment. */
  segmentAt(ms: number): Segment;
  /** Returns the segments that begin in (after, until]; each begins with a jump of local time. */
  jumps(after: number, until: number): readonly Segment[];
  /**
   * Converts a local time to UTC. A local time that occurs twice gives its first or last occurrence; one that is skipped gives
   * the moment shifted forward by the gap.
   */
  toUtc(local: number, occurrence: 'first' | 'last'): number;
}

const zones = new Map<string, Zone>();

/** @throws {RangeError} if there is no such time zone */
export function zoneOf(name: string): Zone {
  const zone = zones.get(name) ?? createZone(offsetReader(name));
  zones.set(name, zone);
  return zone;
}

function createZone(offsetAt: (ms: number) => number): Zone {
  // Intl takes a microsecond or more for an offset: known segments are kept, without gaps, oldest first.
  let segments: { start: number; end: number; offset: number; before: number }[] = [];

  function restartAt(ms: number): void {
    const start = Math.floor(ms / STEP) * STEP - MARGIN;
    const offset = offsetAt(start);
    segments = [{ start, end: start, offset, before: offset }];
  }

  function extend(last: { end: number; offset: number }): void {
    const from = last.end;
    const to = from + STEP;
    const offset = offsetAt(to);
    if (offset === last.offset) {
      last.end = to;
      return;
    }
    let lastOld = from / SECOND;
    let firstNew = to / SECOND;
    while (firstNew - lastOld > 1) {
      const middle = Math.floor((lastOld + firstNew) / 2);
      if (offsetAt(middle * SECOND) === last.offset) lastOld = middle;
      else firstNew = middle;
    }
    last.end = firstNew * SECOND;
    segments.push({ start: last.end, end: to, offset, before: last.offset });
  }

  function segmentAt(ms: number): Segment {
    const first = segments[0];
    if (first === undefined || ms < first.start + STEP) restartAt(ms);
    for (let last = segments.at(-1); last && last.end <= ms + STEP; last = segments.at(-1)) {
      extend(last);
    }
    let low = 0;
    let high = segments.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((segments[middle]?.start ?? Infinity) <= ms) low = middle;
      else high = middle - 1;
    }
    const found = segments[low];
    if (found === undefined) throw new RangeError('no such moment');
    return found;
  }

  return {
    segmentAt,
    jumps: (after, until) => {
      segmentAt(after);
      segmentAt(until);
      return segments.filter(({ start }) => start > after && start <= until);
    },
    toUtc: (local, occurrence) => {
      let segment = segmentAt(local - DAY);
      while (local - segment.offset >= segment.end) segment = segmentAt(segment.end);
      const ms = local - segment.offset;
      if (ms < segment.start) return local - segment.before;
      if (occurrence === 'first') return ms;
      const next = segmentAt(segment.end);
      const again = local - next.offset;
      return again >= next.start ? again : ms;
    },
  };
}

function offsetReader(name: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone: name, timeZoneName: 'longOffset' });
  return (ms) => {
    const parts = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(ms));
    if (parts === null) return 0;
    const [, sign, hours, minutes, seconds = 0] = parts;
    const offset = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds);
    return (sign === '-' ? -offset : offset) * SECOND;
  };
}
