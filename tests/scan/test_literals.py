"""Literals that do not fit the column's declared type: every comparison is the mathematical one of
the stored values, NOT of it too. Python's own integers, fractions and bytes judge."""

import datetime
import fractions
import math

import pyarrow as pa
import pytest

from common import grebe_cli

NAN = float("nan")
INF = float("inf")
OPS = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
       "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
FLOAT_MAX = float.fromhex("0x1.fffffep127")
DOUBLE_MAX = float.fromhex("0x1.fffffffffffffp1023")


def wide_decimals(unscaled, kind):
    """A decimal array whose values the kind's precision need not hold, as some writers' files."""
    width = kind.byte_width
    raw = b"".join((v or 0).to_bytes(width, "little", signed=True) for v in unscaled)
    valid = sum((v is not None) << i for i, v in enumerate(unscaled))
    return pa.Array.from_buffers(kind, len(unscaled),
                                 [pa.py_buffer(valid.to_bytes(8, "little")), pa.py_buffer(raw)])


def seconds(text):
    """Seconds since 1970, exactly: a datetime holds no nanoseconds."""
    whole, _, fraction = text.partition(".")
    at = datetime.datetime.fromisoformat(whole) - datetime.datetime(1970, 1, 1)
    return at // datetime.timedelta(seconds=1) + (
        fractions.Fraction(int(fraction), 10**len(fraction)) if fraction else 0)


def days(text):
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


def case(kind, stored, literals, array=None, unit=1):
    """stored: the values in the array's units; literals: (text, exact value in units / `unit`)."""
    array = pa.array(stored, kind) if array is None else array
    return pytest.param(array, [None if v is None else v if isinstance(v, (bytes, float)) else
                                fractions.Fraction(v) / unit for v in stored], literals,
                        id=str(kind))


def numbers(*texts):
    return [(text, fractions.Fraction(text)) for text in texts]


def quoted(texts, value_of):
    return [(f"'{text}'", value_of(text)) for text in texts]


def decimal_case(kind, unscaled, *texts):
    return case(kind, unscaled, numbers(*texts), wide_decimals(unscaled, kind), 10**kind.scale)


CASES = [
    case(pa.int8(), [-128, 0, None, 127], numbers("128", "-129", "127.5", "1e30", "-1e30")),
    case(pa.int32(), [-2**31, 7, None, 2**31 - 1],
         numbers("2147483648", "-2147483649", "1e30", "-1e30", "1e99999", "7.5", "1e-99999")),
    case(pa.uint32(), [0, None, 2**32 - 1], numbers("-1", "4294967296", "-0.5")),
    case(pa.int64(), [-2**63, None, 2**63 - 1],
         numbers("9223372036854775808", "-9223372036854775809", "-9223372036854775808.5")),
    case(pa.uint64(), [0, None, 2**64 - 1],
         numbers("18446744073709551616", "18446744073709551615", "-1", "1e40")),
    decimal_case(pa.decimal128(4, 2), [-9999, 0, None, 9999], "100", "-100", "99.995", "1e40"),
    decimal_case(pa.decimal128(36, 17), [-10**38 + 1, 92233720368547758070092230685477500000, None,
                                         10**37, 10**36, 7], "922337203685477580700.922306854775",
                 "100000000000000000000", "1e19", "-999999999999999999999.99999999999999999",
                 "-1e21", "1e21", "1e30", "0.000000000000000075"),
    decimal_case(pa.decimal128(38, 0), [-2**127, -10**38, None, 2**127 - 1, 10**38],
                 "170141183460469231731687303715884105727", "1e38", "-1e38", "1e39", "-1e39",
                 "170141183460469231731687303715884105728",
                 "-170141183460469231731687303715884105728",
                 "-170141183460469231731687303715884105729"),
    decimal_case(pa.decimal256(76, 60), [-10**76 + 1, 10**60, None, 10**76 - 1],
                 "123456789012345678901234567890", "-123456789012345678901234567890", "1e16", "1",
                 "1e17", "1e-70"),
    case(pa.float32(), [-INF, -FLOAT_MAX, 0.0, None, NAN, FLOAT_MAX, INF],
         numbers("1e39", "-1e39", "1e400", "-1e400", "3.5e38")),
    case(pa.float64(), [-INF, -DOUBLE_MAX, 0.0, None, NAN, DOUBLE_MAX, INF],
         numbers("1e400", "-1e400", "1.8e308", "1e99999")),
    case(pa.timestamp("ns"), [-2**63 + 1, 0, None, 2**63 - 1],
         quoted(["9999-12-31", "0001-01-01", "9999-12-31T23:59:59.999999999",
                 "2262-04-11T23:47:16.854775808"], seconds), unit=10**9),
    case(pa.timestamp("us"), [0, None, 253402300799999999, 253402300799999998],
         quoted(["9999-12-31T23:59:59.999999999", "9999-12-31T23:59:59.999998001",
                 "1970-01-01T00:00:00.0000005"], seconds), unit=10**6),
    case(pa.timestamp("s"), [-1, 0, None, 253402300799],
         quoted(["9999-12-31T23:59:59.999999999", "1969-12-31T23:59:59.5"], seconds)),
    case(pa.time32("s"), [0, None, 86399],
         [("'00:00:00.000000001'", fractions.Fraction(1, 10**9)),
          ("'23:59:59.5'", fractions.Fraction(172799, 2))]),
    case(pa.date32(), [-2**31, 0, None, 2**31 - 1],
         quoted(["9999-12-31"], days) + [("'9999999-01-01'", 2**40), ("'-9999999-01-01'", -2**40)]),
    case(pa.duration("ms"), [-2**63 + 1, 0, 2, None, 2**63 - 1],
         numbers("1.5", "1e30", "-1e30", "9223372036854775808", "2")),
    case(pa.binary(2), [b"\x00\x00", b"\x01\x02", None, b"\xff\xff"],
         [("0x010203", b"\x01\x02\x03"), ("0x01", b"\x01"), ("0x", b""),
          ("0xffff00", b"\xff\xff\x00")]),
]


def holds(value, op, literal):
    """None: unknown. Python compares floats with fractions exactly."""
    if value is None:
        return None
    if isinstance(value, float) and math.isnan(value):
        return op == "!="
    return OPS[op](value, literal)


def both(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def negation(a):
    return None if a is None else not a


def predicates(stored, text, literal, other_text, other):
    """(predicate, [what it says of each stored value])."""
    for op in OPS:
        verdicts = [holds(v, op, literal) for v in stored]
        yield f"c {op} {text}", verdicts
        yield f"NOT c {op} {text}", [negation(v) for v in verdicts]
    equal = [holds(v, "=", literal) or holds(v, "=", other) for v in stored]
    yield f"c IN ({text}, {other_text})", equal
    yield f"c NOT IN ({text}, {other_text})", [negation(v) for v in equal]
    within = [both(holds(v, ">=", literal), holds(v, "<=", other)) for v in stored]
    yield f"c BETWEEN {text} AND {other_text}", within
    yield f"NOT c BETWEEN {text} AND {other_text}", [negation(v) for v in within]


@pytest.mark.parametrize("array, stored, literals", CASES)
def test_comparisons_are_mathematical(lake, array, stored, literals):
    for rows_of_group in (1, 100):   # alone, bounds settle each row; together, values decide
        lake.write(pa.table({"c": array, "n": range(len(array))}), f"{rows_of_group}.parquet",
                   row_group_size=rows_of_group, write_page_index=True)
    for at, (text, literal) in enumerate(literals):
        other = literals[(at + 1) % len(literals)]
        for where, verdicts in predicates(stored, text, literal, *other):
            expected = [n for n, verdict in enumerate(verdicts) if verdict]
            assert lake.values(where, "n") == 2 * expected, where


def test_a_float_literal_is_the_nearest_float(lake):
    lake.write(pa.table({"f": pa.array([0.1, 0.0, -1e-45], pa.float32()), "n": range(3)}))
    assert lake.values("f = 0.1", "n") == [0]
    assert lake.values("f = 1e-60", "n") == [1]
    assert lake.values("f < -1e-60", "n") == [2]


WIDE = {"922337203685477580700.922306854775": 0, "-5e20": 1, "0.00000000000000001": 2,
        "1e21": None, "1e-18": None, "1e60": None}


@pytest.mark.parametrize("sorted_index", [False, True])
def test_lookups_of_wide_decimals(lake, tmp_path, sorted_index):
    """With an index and without one."""
    unscaled = [92233720368547758070092230685477500000, -5 * 10**37, 1, None]
    table = pa.table({"c": wide_decimals(unscaled, pa.decimal128(36, 17)), "n": range(4)})
    lake.write(table, row_group_size=1, write_page_index=True)
    for text, row in WIDE.items():
        found = pa.ipc.open_stream(grebe_cli.run(
            ["get", lake.data, f"c={text}", "--columns", "n", "--format", "arrow"])).read_all()
        assert found["n"].to_pylist() == ([] if row is None else [row]), text
    root = tmp_path / "index"
    grebe_cli.create(lake.data, ["c"], root, extra=["--sorted"] if sorted_index else [])
    for text, row in WIDE.items():
        found = grebe_cli.get(lake.data, [("c", text)], root, columns=["n"])
        assert found["n"].to_pylist() == ([] if row is None else [row]), text
