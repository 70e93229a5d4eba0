"""Lance with its B-tree on the key: a second copy of the data in Lance's own format."""
import datetime

import lance
import pyarrow as pa
import pyarrow.dataset as ds

import peer


def options(config):
    if not config["s3"]:
        return None
    return {"aws_endpoint": config["s3"]["endpoint"], "aws_region": "us-east-1",
            "aws_access_key_id": config["s3"]["access_key"], "allow_http": "true",
            "aws_secret_access_key": config["s3"]["secret_key"]}


def build(config):
    """Only the B-tree: the copy is made before, by `copy`, and its time is not the index's."""
    dataset = lance.dataset(config["copy"], storage_options=options(config))
    dataset.create_scalar_index(config["key"], "BTREE", replace=True)
    # What a replaced index leaves behind must not count as its size.
    dataset.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)


def copy(config):
    source = ds.dataset(config["files"], format="parquet")
    lance.write_dataset(source.to_batches(columns=config["columns"]), config["copy"],
                        schema=pa.schema([source.schema.field(c) for c in config["columns"]]),
                        storage_options=options(config), mode="create")


def open_peer(config):
    dataset = lance.dataset(config["copy"], storage_options=options(config))

    def lookup(key):
        return dataset.to_table(columns=config["columns"], filter=f"{config['key']} = {key}")
    return lookup


if __name__ == "__main__":
    peer.main(lance.__version__, open_peer, build=build, copy=copy)
