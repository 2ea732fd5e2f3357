# Sourced, after python-venv.sh, by the scripts that run Spark: a virtual environment with it, and the jars of Delta. FOLDER is this one.
#
#   spark FOLDER      sets `venv`, and exports DELTA_JARS

spark() {
    venv spark "$1/spark/requirements.txt"
    command -v java >/dev/null || skip "java (17 or newer)"
    command -v mvn >/dev/null || skip "mvn"
    export DELTA_JARS
    DELTA_JARS=$cache/spark-jars-$(sha256sum "$1/spark/pom.xml" | cut -c1-12)
    [ -e "$DELTA_JARS/complete" ] && return
    rm -rf "$DELTA_JARS"
    (cd "$1/spark" && mvn -B -q -ntp dependency:copy-dependencies -DoutputDirectory="$DELTA_JARS")
    touch "$DELTA_JARS/complete"
}
