#!/usr/bin/env bash
# The tests of the compiled parts, with kernels that watch themselves, and with kernels in plain C as any compiler gets
# them: `make sanitize`, or .ci/sanitize.sh PYTHON [KIND…]. clang is used where there is one, else gcc.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
tests=(
  tests/test_kernels.py tests/test_candidates.py tests/sweep/test_peaks.py tests/test_streaming.py tests/sweep/test_voxels.py
  tests/properties tests/distributions tests/trust/fitting/test_fit.py
)
compiler=$(command -v clang || command -v gcc)

# Whatever breaks a rule ends the process. Output of sanitizers is lost where pytest catches it, hence -s.
watched() {
  local flags=(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer) runtime
  if [[ $compiler == *clang ]]; then
    flags+=(-shared-libasan -fsanitize-ignorelist=.ci/sanitizer-ignores.txt)
    runtime=$(clang -print-file-name="libclang_rt.asan-$(uname -m).so")
  else
    runtime=$(gcc -print-file-name=libasan.so)
  fi
  build watched "${flags[*]}"
  # Leaks are not looked for: Python itself keeps memory until it ends.
  run watched env LD_PRELOAD="$runtime" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
}

# MSVC has no long double that is longer than a double. Pedantic only about headers (tests/test_kernels.py): the API of
# Python turns functions into objects, which C forbids.
plain() {
  local flags=(-DLC_PLAIN_C -std=c11 -Wall -Wextra -Werror)
  if [[ $(uname -m) == x86_64 && $compiler == *gcc ]]; then flags+=(-mlong-double-64); fi
  build plain "${flags[*]}"
  run plain env
}

build() {
  local folder=build/$1 flags=$2
  CC=$compiler CFLAGS=$flags LDFLAGS=$flags LESIONCOUNT_NO_NPM=1 \
    "$python" setup.py --quiet build --build-base "$folder" --build-lib "$folder/lib"
}

run() {
  local folder=$PWD/build/$1
  shift
  "$@" PYTHONPATH="$folder/lib" PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -s -p no:cacheprovider "${tests[@]}"
}

for kind in "${@:-watched plain}"; do
  for one in $kind; do
    echo "$one, with $compiler"
    "$one"
  done
done
