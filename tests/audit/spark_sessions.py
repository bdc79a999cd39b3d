"""A session of Spark for tests of records."""

import os
import shutil
import sys
from functools import cache
from typing import Any

import pytest


@cache
def spark_session() -> Any:
    """One session for all tests; skips where there is no Java, but not in CI."""
    if shutil.which("java") is None and "CI" not in os.environ:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # what its workers run, which count
    options = {
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # compiling takes longer than so few rows
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Dlog4j2.level=error",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
