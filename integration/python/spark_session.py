"""Spark with Delta in this process, from the jars that `DELTA_JARS` names (a folder, filled by ../spark-jars.sh)."""

import os
import re
from pathlib import Path

from pyspark.sql import SparkSession

JARS = re.compile(r"(delta|unitycatalog)-.*\.jar")


def start(scratch: Path) -> SparkSession:
    """A session that reads and writes Delta, in UTC; its own files go to `scratch`."""
    jars = [str(jar) for jar in sorted(Path(os.environ["DELTA_JARS"]).iterdir()) if JARS.fullmatch(jar.name)]
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", os.pathsep.join(jars))
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC -Dderby.system.home={scratch}")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
