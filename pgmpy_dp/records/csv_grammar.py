"""Compiled code that splits CSV files strictly by RFC 4180, and numbers the texts of their fields.

::

    file   = header *(end record) [end]
    record = field *(delimiter field), as many fields as the header
    field  = plain or '"' quoted '"'
    plain  = any bytes but '"', the delimiter, CR, LF and NUL
    quoted = any bytes but NUL, with '""' for '"'
    end    = LF or CRLF, for the whole file as after the header

Which bytes end a record, separate its fields or quote them depends on the header only, never on other records. A file
that does not match is refused, never repaired: a lone CR, which some libraries leave unquoted and others take for the
end of a record, would let one person's text become separate records.
"""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled

# Ends of records.
LF, CRLF, EITHER = 0, 1, 2

# Problems of a file.
SOUND, QUOTE, RETURN, FEED, NUL, WIDTH, UNCLOSED, LONG = range(8)

_QUOTE, _RETURN, _FEED = 34, 13, 10


@compiled
def split(buffer, start, stop, last, delimiter, ending, width, maximum, places, starts, stops):
    """Find the fields of complete records between two bytes of a buffer.

    `places` gives for each field its row of `starts` and `stops`, or -1 for none. These receive the first and last byte
    of each field without its quotes, with one column per record; the function returns when they are full. `last` means
    that the file ends with the buffer. `width` is the number of fields, or -1 if any number is allowed; `maximum`
    bounds the bytes of a record without its end. Returns the number of records, the first byte after them, the number
    of fields of the last, and the problem of the file.
    """
    special = np.zeros(256, dtype=np.bool_)
    special[delimiter] = special[_QUOTE] = special[_RETURN] = special[_FEED] = special[0] = True
    records, at, fields = 0, start, 0
    while records < starts.shape[1] and at < stop:
        here, fields = at, 0
        while True:
            if here < stop and buffer[here] == _QUOTE:
                begin = here + 1
                here = begin
                while True:
                    if here >= stop:
                        return records, at, fields, UNCLOSED if last else SOUND
                    byte = buffer[here]
                    if byte == 0:
                        return records, at, fields, NUL
                    if byte == _QUOTE:
                        if here + 1 >= stop or buffer[here + 1] != _QUOTE:
                            break
                        here += 1
                    here += 1
                end = here
                here += 1
            else:
                begin = here
                while here < stop and not special[buffer[here]]:
                    here += 1
                end = here
            close = here
            if here >= stop and not last:
                return records, at, fields, SOUND  # the record continues beyond the buffer
            if 0 <= width <= fields or fields >= places.size:
                return records, at, fields, WIDTH
            if places[fields] >= 0:
                starts[places[fields], records] = begin
                stops[places[fields], records] = end
            fields += 1
            if here >= stop:
                break
            byte = buffer[here]
            here += 1
            if byte == delimiter:
                continue
            if byte == _FEED and ending != CRLF:
                break
            if byte == _RETURN and ending != LF:
                if here < stop and buffer[here] == _FEED:
                    here += 1
                    break
                if here >= stop and not last:
                    return records, at, fields, SOUND
            if byte == 0:
                return records, at, fields, NUL
            return records, at, fields, RETURN if byte == _RETURN else FEED if byte == _FEED else QUOTE
        if width >= 0 and fields != width:
            return records, at, fields, WIDTH
        if close - at > maximum:
            return records, at, fields, LONG
        at = here
        records += 1
    return records, at, fields, SOUND


@compiled
def number_texts(buffer, starts, stops, first, records, seed, slots, ends, pool, count, numbers):
    """Number the distinct texts of a column's fields in order of appearance."""
    mask = np.uint64(slots.size - 1)
    for record in range(first, records):
        begin, end = starts[record], stops[record]
        size = end - begin
        mixed = seed
        for byte in range(begin, end):
            mixed = (mixed ^ np.uint64(buffer[byte])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        slot = mixed & mask
        while True:
            number = slots[slot] - 1
            if number < 0:
                used = ends[count - 1] if count > 0 else 0
                if 2 * count >= slots.size or used + size > pool.size or count >= ends.size:
                    return record, count
                for k in range(size):
                    pool[used + k] = buffer[begin + k]
                ends[count] = used + size
                slots[slot] = count + 1
                numbers[record] = count
                count += 1
                break
            left = ends[number - 1] if number > 0 else 0
            if ends[number] - left == size:
                same = True
                for k in range(size):
                    if pool[left + k] != buffer[begin + k]:
                        same = False
                        break
                if same:
                    numbers[record] = number
                    break
            slot = (slot + np.uint64(1)) & mask
    return records, count


@compiled
def rehash(pool, ends, count, seed, slots):
    """Fill a larger hash table with the numbered texts."""
    mask = np.uint64(slots.size - 1)
    left = 0
    for number in range(count):
        mixed = seed
        for byte in range(left, ends[number]):
            mixed = (mixed ^ np.uint64(pool[byte])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        slot = mixed & mask
        while slots[slot] > 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number + 1
        left = ends[number]
