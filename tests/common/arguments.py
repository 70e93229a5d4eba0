"""The arguments that programs of random tests share, and the seed that each of them prints."""

import argparse
import os
import random


def parser(doc, tables=None, keep=False, jobs=False):
    """--seed; --tables and --table where there is a default number of tables; --keep; --jobs."""
    made = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    made.add_argument("--seed", type=int, default=int(os.environ.get("GREBE_TEST_SEED", "0")),
                      help="0, the default: drawn")
    if tables is not None:
        made.add_argument("--tables", type=int, default=tables)
        made.add_argument("--table", type=int, help="only this one")
    if keep:
        made.add_argument("--keep", action="store_true", help="keep the folders of failed tables")
    if jobs:
        made.add_argument("--jobs", type=int, default=os.cpu_count())
    return made


def parse(made):
    """The arguments, with a seed drawn where none was given, which is printed; and `numbers`, the
    tables to try."""
    options = made.parse_args()
    options.seed = options.seed or random.SystemRandom().randrange(1, 10**9)
    print(f"seed {options.seed}", flush=True)
    if "table" in options:
        options.numbers = ([options.table] if options.table is not None
                           else list(range(options.tables)))
    return options
