"""Polars over the same files: one lazy frame, the filter pushed down to the scan."""
import polars as pl

import peer


def open_peer(config):
    options = None
    if config["s3"]:
        options = {"aws_endpoint_url": config["s3"]["endpoint"], "aws_region": "us-east-1",
                   "aws_access_key_id": config["s3"]["access_key"], "aws_allow_http": "true",
                   "aws_secret_access_key": config["s3"]["secret_key"]}
    frame = pl.scan_parquet(config["files"], storage_options=options, hive_partitioning=False,
                            use_statistics=True, parallel="auto").select(config["columns"])

    def lookup(key):
        return frame.filter(pl.col(config["key"]) == key).collect().to_arrow()
    return lookup


if __name__ == "__main__":
    peer.main(pl.__version__, open_peer)
