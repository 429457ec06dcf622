#!/usr/bin/env bash
# Claim: Spark's xxhash64 and hash skip nulls, so rows that contain the same values in other columns have one hash, and integers from 2^63 on become null without an error.
# Package: pyspark 4.3.0 (PyPI)
# Expected: ('a', null, 'b') and ('a', 'b', null) are different rows with different hashes of 64 bits; an integer that does not fit is an error.
# Happens: A null leaves the running hash as it is, and so does an empty array. All of these rows have one hash, and that of null is the seed, 42. createDataFrame turns 2^63 into null. So does a Python function of type long without Arrow; with it, 2^63 is an error, and 0.5 becomes 0 where the other gives null.
# Seen: xxhash64('a', null, 'b') = xxhash64('a', 'b', null) = xxhash64(array('a', 'b')) = -7357372313250070212; xxhash64(null) = xxhash64(array()) = 42 (2026-11-28)
# Matters: Keys for exact deduplication of several columns merge different rows. Half of all unsigned fingerprints disappear as null, and nulls are then joined with nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyspark==4.3.0 pyarrow==26.0.1 pandas==2.3.3 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import os
import sys

from pyspark.errors import PythonException
from pyspark.sql import SparkSession, functions, types

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for values in ("'a', null, 'b'", "'a', 'b', null", "array('a', 'b')", "null", "array()"):
    print(values, *spark.sql(f"select xxhash64({values}), hash({values})").first())
made = spark.createDataFrame([(2**63 - 1,), (2**63,)], ["f"])
print(made.dtypes, [row.f for row in made.collect()])
signed = spark.createDataFrame([(1,), (-1,)], ["f"])
for arrow in (False, True):
    unsigned = functions.udf(lambda value: value % 2**64, types.LongType(), useArrow=arrow)
    half = functions.udf(lambda value: value / 2, types.LongType(), useArrow=arrow)
    for name, function in (("value % 2**64", unsigned), ("value / 2", half)):
        try:
            print(f"Arrow {arrow}", name, [row.f for row in signed.select(function("f").alias("f")).collect()])
        except PythonException:
            print(f"Arrow {arrow}", name, "error")
spark.stop()
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
'a', null, 'b' -7357372313250070212 190734147
'a', 'b', null -7357372313250070212 190734147
array('a', 'b') -7357372313250070212 190734147
null 42 42
array() 42 42
[('f', 'bigint')] [9223372036854775807, None]
Arrow False value % 2**64 [1, None]
Arrow False value / 2 [None, None]
Arrow True value % 2**64 error
Arrow True value / 2 [0, 0]
SEEN
