#!/bin/sh
# The `java` that the worker of a local cluster finds in its JAVA_HOME.
#
# An executor gets a control group of its own before Java starts, without a limit: the cluster sets
# the quota once the executor has registered. Its pid stays the same through `exec` and goes into a
# file named after it. Anything that is not an executor goes straight to the real Java.
#
# A standalone master starts as many executors as there are slots when an application registers,
# whatever the application asks for. So executors beyond the first PENSTOCK_START_WITH wait here,
# as a sleeping shell, until the driver has told the master how many it wants (that makes the file
# $PENSTOCK_GATES/<application>); then they end, and the master does not replace them.

executor=no app= id= previous=
for word in "$@"; do
    case $previous in
        --app-id) app=$word ;;
        --executor-id) id=$word ;;
    esac
    [ "$word" = org.apache.spark.executor.CoarseGrainedExecutorBackend ] && executor=yes
    previous=$word
done
[ $executor = yes ] || exec "$PENSTOCK_JAVA" "$@"

gate=$PENSTOCK_GATES/$app
if [ "$id" -ge "${PENSTOCK_START_WITH:-1000000}" ] && [ ! -e "$gate" ]; then
    while [ ! -e "$gate" ]; do
        kill -0 "$PPID" 2>/dev/null || exit 0 # the worker is gone
        sleep 0.3
    done
    exit 0
fi

while IFS= read -r group; do
    [ -n "$group" ] || continue
    if ! { mkdir "$group/$app.$id" && echo $$ >"$group/$app.$id/cgroup.procs"; }; then
        echo "penstock: executor $id runs without a CPU limit" >&2
    fi
done <<END
$PENSTOCK_GROUPS
END

# At a site an executor does not always notice that its worker was killed: the network may be gone
# at the same moment, and with it the news. So someone looks.
if [ -n "$PENSTOCK_TIED" ]; then
    (
        while kill -0 "$PPID" && kill -0 $$; do sleep 2; done
        kill -9 $$
    ) </dev/null >/dev/null 2>&1 &
fi

if [ -n "$PENSTOCK_CLASS_LISTS" ] && [ "$id" = 0 ]; then
    set -- "-XX:DumpLoadedClassList=$PENSTOCK_CLASS_LISTS/$app.classes" "$@"
elif [ -n "$PENSTOCK_ARCHIVE" ]; then
    set -- -Xshare:auto "-XX:SharedArchiveFile=$PENSTOCK_ARCHIVE" -Xlog:disable "$@"
fi
echo $$ >"$PENSTOCK_EXECUTORS/.$app.$id"
mv "$PENSTOCK_EXECUTORS/.$app.$id" "$PENSTOCK_EXECUTORS/$app.$id"
# shellcheck disable=SC2086 # several words
exec "$PENSTOCK_JAVA" -XX:-UsePerfData "-Djava.io.tmpdir=$TMPDIR" $PENSTOCK_JAVA_OPTIONS \
    "-Dlog4j2.configurationFile=$PENSTOCK_EXECUTOR_LOG" "$@"
