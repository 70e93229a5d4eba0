"""pyarrow.dataset over the same files: the dataset is opened once, its footers are kept."""
import pyarrow as pa
import pyarrow.dataset as ds

import peer


def open_peer(config):
    filesystem = None
    files = config["files"]
    if config["s3"]:
        from pyarrow.fs import S3FileSystem
        filesystem = S3FileSystem(
            endpoint_override=config["s3"]["endpoint"], region="us-east-1",
            access_key=config["s3"]["access_key"], secret_key=config["s3"]["secret_key"])
        files = [path.split("://")[1] for path in files]
    pa.set_cpu_count(2)
    dataset = ds.dataset(files, filesystem=filesystem, format="parquet")
    for fragment in dataset.get_fragments():
        fragment.ensure_complete_metadata()
    columns = config["columns"]

    def lookup(key):
        return dataset.to_table(columns=columns, filter=ds.field(config["key"]) == key)
    return lookup


if __name__ == "__main__":
    peer.main(pa.__version__, open_peer)
