#!/bin/sh
# What is run on a machine with a GPU. It needs no toolchain: `cargo xtask gpu-bundle` puts programs beside it.
#
#   run.sh test [FILTER]      all test binaries; prints `N passed, N failed` and fails with the second
#   run.sh stream             the tests of reads in the order of a stream and of kernels, with modules loaded late and early
#   run.sh gds                the tests of cuFile; those fail, and say why, where the disk has no record of udev's
#   run.sh --udev             as root, with that record for as long as it takes: the tests of cuFile, streams and batches
#                             under the modes AUTO and OFF
#   run.sh --udev STEP ...    the same for another step: `run.sh --udev bench --case hot`
#   run.sh exits              40 processes at once that end with transfers in flight: none crashes, none prints
#   run.sh memcheck [FILTER]  the tests of this name, `memory::` unless told, under compute-sanitizer
#   run.sh compat             the tests by both modes of compatibility; then with no device to be seen
#   run.sh copy               a file to the device and back to a file, by the command
#   run.sh bench [ARGUMENTS]  `kvik bench gpu`, beside KvikIO where this Python has CuPy
#   run.sh all                all of these, and `N passed, N failed` of the steps
#
# The record is what udevd writes about a disk where it runs, and cuFile registers no file of a disk without it. Where there
# is none for the disk under the temporary folder, --udev writes it, and takes it away again at its end.
#
# Logs go to the folder $OUT, if that is set, else to logs beside this file.
set -u
here=$(cd "$(dirname "$0")" && pwd)
kvik=$here/bin/kvik
out=${OUT:-$here/logs}
# The tests would take the fake driver of the build.
KVIK_TEST_GPU=real
export KVIK_TEST_GPU

begin() {
    mkdir -p "$out" || exit 1
    temporary=$(mktemp -d "${TMPDIR:-/tmp}/kvik-gpu.XXXXXX") || exit 1
    record_is_ours=
    trap 'remove_record; rm -rf "$temporary"' EXIT
    # A signal ends the shell without what is set for its end, unless it comes by here.
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# run_tests LOG [ARGUMENTS]: sets `passed` and `failed`. A binary that does not come to its last line has failed, too.
run_tests() {
    log=$out/$1.log
    shift
    passed=0
    failed=0
    for binary in "$here"/tests/*; do
        name=$(basename "$binary")
        file=$temporary/tests
        # One after the other: some look at what the whole process has pinned. One that hangs ends with 124, and is the last
        # in what is printed then.
        timeout --foreground -k 10 300 "$binary" --test-threads 1 "$@" >"$file" 2>&1
        code=$?
        cat "$file" >>"$log"
        counts=$(sed -n 's/^test result: [^0-9]*\([0-9]*\) passed; \([0-9]*\) failed.*/\1 \2/p' "$file" | tail -n 1)
        if [ -z "$counts" ]; then
            failed=$((failed + 1))
            echo "$name ended with $code:"
            tail -n 30 "$file"
            continue
        fi
        passed=$((passed + ${counts% *}))
        failed=$((failed + ${counts#* }))
        if [ "$code" -ne 0 ]; then
            sed -n '/^failures:/,$p' "$file" | head -n 100
            [ "${counts#* }" -ne 0 ] || failed=$((failed + 1))
        fi
    done
}

verdict() {
    echo "$1: $passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

check() { # WORDS, then a command that must succeed
    words=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $words"
    fi
}

# ends_with CODE LOG COMMAND...: what it prints is in $file, and at the end of the log.
ends_with() {
    wanted=$1
    log=$out/$2.log
    shift 2
    file=$temporary/printed
    "$@" >"$file" 2>&1
    code=$?
    cat "$file" >>"$log"
    [ "$code" -eq "$wanted" ] && return 0
    echo "ended with $code and not with $wanted: $*"
    tail -n 10 "$file"
    return 1
}

tests() {
    run_tests test --skip gds:: "$@"
    verdict test
}

gds() {
    run_tests gds gds::
    verdict gds
}

# run_under LOG "VARIABLE=VALUE ..." FILTER...: the tests once with each of the values, added up.
run_under() {
    log_name=$1
    values=$2
    shift 2
    passed_in_all=0
    failed_in_all=0
    for value in $values; do
        export "$value"
        run_tests "$log_name" "$@"
        unset "${value%%=*}"
        verdict "$log_name $value"
        passed_in_all=$((passed_in_all + passed))
        failed_in_all=$((failed_in_all + failed))
    done
    passed=$passed_in_all
    failed=$failed_in_all
}

stream() {
    run_under stream "CUDA_MODULE_LOADING=LAZY CUDA_MODULE_LOADING=EAGER" on_stream:: queued:: kernels:: beside::
    verdict stream
}

exits() {
    passed=0
    failed=0
    head -c 67108864 /dev/urandom >"$temporary/data" || return 1
    running=
    for number in $(seq 40); do
        case $((number % 7)) in
        0) how=main-returns ;;
        1) how=main-exits ;;
        2) how=main-leaks ;;
        3) how=thread-reads ;;
        4) how=stream-returns ;;
        5) how=stream-exits ;;
        6) how=stream-leaks ;;
        esac
        "$here/bin/kvik-tests-child" exit-device "$how" "$temporary/data" >"$temporary/exit-$number" 2>&1 &
        running="$running $number:$how:$!"
    done
    for each in $running; do
        number=${each%%:*}
        pid=${each##*:}
        how=${each#*:}
        wait "$pid"
        code=$?
        if [ "$code" -eq 0 ] && [ ! -s "$temporary/exit-$number" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "${how%:*} ended with $code and printed:" >>"$out/exits.log"
            cat "$temporary/exit-$number" >>"$out/exits.log"
        fi
    done
    [ "$failed" -eq 0 ] || head -n 30 "$out/exits.log"
    verdict exits
}

memcheck() {
    passed=0
    failed=0
    if ! command -v compute-sanitizer >/dev/null; then
        echo "memcheck: 0 passed, 1 failed: compute-sanitizer is not on the path"
        return 1
    fi
    for binary in "$here"/tests/*; do
        name=$(basename "$binary")
        check "memcheck of $name" ends_with 0 memcheck \
            compute-sanitizer --tool memcheck --error-exitcode 9 "$binary" --test-threads 1 "${1:-memory::}"
        grep 'ERROR SUMMARY\|test result' "$file"
    done
    verdict memcheck
}

compat() {
    run_under compat "KVIK_COMPAT_MODE=AUTO KVIK_COMPAT_MODE=ON" --skip gds::
    passed_before=$passed
    failed_before=$failed
    passed=0
    failed=0
    head -c 5000000 /dev/urandom >"$temporary/host"
    CUDA_VISIBLE_DEVICES=
    export CUDA_VISIBLE_DEVICES
    check "a copy on the host with no device to be seen" \
        ends_with 0 compat "$kvik" copy --verify "$temporary/host" "$temporary/host-copy"
    check "a copy through a device with none to be seen is refused" \
        ends_with 7 compat "$kvik" copy --via-gpu "$temporary/host" "$temporary/no-copy"
    check "a benchmark of a device with none to be seen is refused" \
        ends_with 7 compat timeout 60 "$kvik" bench gpu --size 8MiB --case read-hot
    check "doctor with no device to be seen" ends_with 0 compat "$kvik" doctor
    unset CUDA_VISIBLE_DEVICES
    passed=$((passed + passed_before))
    failed=$((failed + failed_before))
    verdict compat
}

# Sets `record` and `type` for the disk under the temporary folder.
find_record() {
    mount=$(df --output=target "$temporary" | tail -n 1)
    found=$(awk -v mount="$mount" '$5 == mount { for (i = 7; i < NF; i++) if ($i == "-") type = $(i + 1); print $3, type }' /proc/self/mountinfo | tail -n 1)
    record=/run/udev/data/b${found% *}
    type=${found#* }
}

lay_record() {
    find_record
    [ -e "$record" ] && return 0
    new_folders=
    for folder in /run/udev /run/udev/data; do
        [ -d "$folder" ] && continue
        mkdir "$folder" || return 1
        new_folders="$folder $new_folders"
    done
    record_is_ours=yes
    printf 'I:1\nE:ID_FS_TYPE=%s\nE:ID_FS_USAGE=filesystem\nE:ID_FS_VERSION=1.0\nG:systemd\n' "$type" >"$record"
}

remove_record() {
    [ -n "$record_is_ours" ] || return 0
    record_is_ours=
    rm -f "$record"
    for folder in $new_folders; do
        rmdir "$folder"
    done
}

# The step, or the tests of cuFile, with a record of udev's.
with_udev() {
    # Who has it already keeps it. Local, since the step may come here again; every sh that is in use knows the word.
    local outer="$record_is_ours" code
    if ! lay_record; then
        remove_record
        echo "udev: 0 passed, 1 failed: $record could not be written; only root can"
        return 1
    fi
    "$@"
    code=$?
    [ -n "$outer" ] || remove_record
    return "$code"
}

udev() {
    run_under udev "KVIK_COMPAT_MODE=AUTO KVIK_COMPAT_MODE=OFF" gds:: on_stream:: queued:: batches::
    verdict udev
}

copy() {
    passed=0
    failed=0
    head -c 1073741824 /dev/urandom >"$temporary/source" || return 1
    check "a copy through the device" \
        ends_with 0 copy "$kvik" copy --via-gpu --stats "$temporary/source" "$temporary/destination"
    check "the copy has the bytes of the source" cmp "$temporary/source" "$temporary/destination"
    cat "$file"
    rm -f "$temporary/source" "$temporary/destination"
    verdict copy
}

bench() {
    passed=0
    failed=0
    if [ -d "$here/wheels" ] && python3 -c 'import cupy, numpy' 2>/dev/null &&
        python3 -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --target "$temporary/site" \
            "$here"/wheels/*.whl; then
        set -- --kvikio "$(command -v python3)" --kvikio-packages "$temporary/site" "$@"
    else
        echo "KvikIO takes no part: no wheels, or python3 has no CuPy"
    fi
    "$kvik" bench gpu --save "$out/bench.json" "$@" >"$out/bench.txt"
    code=$?
    cat "$out/bench.txt"
    check "kvik bench gpu, which ended with $code" [ "$code" -eq 0 ]
    verdict bench
}

all() {
    steps_passed=0
    steps_failed=0
    for step in tests stream "with_udev udev" exits memcheck compat copy bench; do
        echo "== $step"
        # A word of two is a command and its argument.
        if $step; then
            steps_passed=$((steps_passed + 1))
        else
            steps_failed=$((steps_failed + 1))
        fi
    done
    passed=$steps_passed
    failed=$steps_failed
    verdict "all steps"
}

with=
if [ "${1:-}" = --udev ]; then
    with=with_udev
    shift
    [ $# -gt 0 ] || set -- udev
fi
step=${1:-}
[ $# -eq 0 ] || shift
case $step in
test)
    step=tests
    ;;
stream | gds | udev | exits | memcheck | compat | copy | bench | all) ;;
*)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
begin
$with "$step" "$@"
