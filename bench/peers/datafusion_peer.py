"""DataFusion over the same files: a registered table, metadata cached, filters pushed down to
the pages, rows filtered while decoding."""
import datafusion
import pyarrow as pa
from datafusion import SessionConfig, SessionContext, col, lit

import peer


def open_peer(config):
    settings = (SessionConfig().with_target_partitions(2)
                .set("datafusion.execution.parquet.pushdown_filters", "true")
                .set("datafusion.execution.parquet.reorder_filters", "true")
                .set("datafusion.execution.parquet.enable_page_index", "true")
                .set("datafusion.execution.collect_statistics", "true"))
    ctx = SessionContext(settings)
    ctx.sql("SET datafusion.runtime.metadata_cache_limit = '2G'").collect()
    path = config["table"]
    if config["s3"]:
        from datafusion.object_store import AmazonS3
        bucket = path.split("/")[2]
        ctx.register_object_store("s3://", AmazonS3(
            bucket_name=bucket, endpoint=config["s3"]["endpoint"], allow_http=True,
            region="us-east-1", access_key_id=config["s3"]["access_key"],
            secret_access_key=config["s3"]["secret_key"]), bucket)
    ctx.register_listing_table("lake", path.rstrip("/") + "/")
    frame = ctx.table("lake").select(*[col(c) for c in config["columns"]])

    schema = frame.schema()

    def lookup(key):
        batches = frame.filter(col(config["key"]) == lit(key)).collect()
        return pa.Table.from_batches(batches, schema=schema)
    return lookup


if __name__ == "__main__":
    peer.main(datafusion.__version__, open_peer)
