"""The JSON beside hyparquet's files: every row, written by another reader. Compared by meaning,
since JSON has neither dates, bytes, decimals nor all integers."""

import datetime
import decimal
import json
import math

# hyparquet puts these together from their parts (variant, geometry); pyarrow 26 gives the parts.
OTHER_MEANING = ("shredded-", "geospatial", "geoparquet")


def load(path):
    """The rows of NAME.parquet's NAME.json; None where there is none to compare with."""
    sibling = path.with_suffix(".json")
    if ("hyparquet" not in path.parts or not sibling.exists()
            or path.name.startswith(OTHER_MEANING)):
        return None
    return json.loads(sibling.read_text())


def difference(table, rows):
    """None when the table's rows mean what the JSON says, else where they do not."""
    names = table.schema.names
    try:
        columns = [column.to_pylist() for column in table.columns]
    except OverflowError:   # a date that Python does not have
        return None
    if len(rows) != table.num_rows:
        return f"{table.num_rows} rows, {len(rows)} in JSON"
    for number, row in enumerate(rows):
        cells = row if isinstance(row, list) else [row.get(name) for name in names]
        for name, column, cell in zip(names, columns, cells):
            if not means(column[number], cell):
                return f"row {number} column {name}: {column[number]!r:.80}, JSON {cell!r:.80}"
    return None


def means(value, cell):
    if value is None:
        return cell is None
    if isinstance(value, (bool, str)):
        return value == cell
    if isinstance(value, bytes):
        return cell in (list(value), value.decode("utf-8", "replace"), uuid_text(value)) or (
            isinstance(cell, dict) and list(cell.values()) == list(value))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return same_time(value, cell)
    if isinstance(value, (int, float, decimal.Decimal)):
        return same_number(float(value), cell)
    if isinstance(value, dict):
        return isinstance(cell, dict) and all(means(v, cell.get(k)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        if not value and cell is None:   # that reader gives null for some empty lists
            return True
        if isinstance(cell, dict):   # a map
            return len(value) == len(cell) and all(means(v, cell.get(str(k))) for k, v in value)
        return isinstance(cell, list) and len(value) == len(cell) and all(
            map(means, value, cell))
    return str(value) == str(cell)


def uuid_text(value):
    text = value.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def same_number(value, cell):
    if math.isnan(value) or math.isinf(value):
        return cell is None or str(cell).lower() in ("nan", "infinity", "-infinity")
    try:
        return math.isclose(value, float(cell), rel_tol=1e-6, abs_tol=1e-12)
    except (TypeError, ValueError):
        return False


def same_time(value, cell):
    """To the millisecond, as JavaScript's dates are."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.timezone.utc)
        value = value.astimezone(datetime.timezone.utc)
        text = value.strftime("%Y-%m-%dT%H:%M:%S") + f".{value.microsecond // 1000:03d}Z"
        return str(cell) in (text, text[:10])
    return str(cell).startswith(value.isoformat()[:10])
