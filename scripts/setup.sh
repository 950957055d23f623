# Sourced by the other scripts: installs what is missing, configures and builds. Does nothing the second time.
#
# Root or sudo installs Debian's packages; without either the exact line to run is printed.

attest_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
attest_build=${ATTEST_BUILD:-$attest_root/build}

# What the program needs, what the quick tier of tests needs besides, and what the other tests need.
attest_packages="cmake ninja-build g++ git libeigen3-dev libhwy-dev libxtensor-dev libxtensor-blas-dev libxsimd-dev libopenblas-dev
  opencl-headers opencl-clhpp-headers ocl-icd-opencl-dev pocl-opencl-icd libclblast-dev libbenchmark-dev libcli11-dev
  libfmt-dev libkainjow-mustache-dev libseccomp-dev nlohmann-json3-dev libpugixml-dev libxxhash-dev"
attest_test_packages="libgtest-dev libgmock-dev libdlpack-dev clang-format clang-14 libclang-rt-14-dev libomp-14-dev"
attest_all_test_packages="libmpfr-dev libopenmpi-dev openmpi-bin oclgrind ccache clang-tidy-14 groff-base
  chromium chromium-driver fonts-dejavu-core iproute2 python3-selenium python3-dev python3-pip python3-venv slurm-wlm w3m"

# attest_progress WHAT COMMAND...: runs the command and shows how far it is, with the last line that it printed: on a
# terminal one line that changes every second, elsewhere a line every 15. A command of a moment shows nothing; of one
# that fails the output is shown.
attest_progress() {
  local what=$1 log ticker status=0
  shift
  log=$(mktemp)
  attest_ticker "$what" "$log" &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  [ ! -t 1 ] || printf '\r\033[K'
  if [ "$status" -ne 0 ]; then
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" | tail -n 60 >&2 || true
    echo "$what: failed with exit code $status" >&2
  fi
  rm -f "$log"
  return "$status"
}

# Ends with the script, and takes the log with it: a script that is interrupted can't.
attest_ticker() { # WHAT LOG
  local start=$SECONDS next=0 width=120 line
  [ ! -t 1 ] || width=$(($(tput cols 2>/dev/null || echo 80) - 1))
  while sleep 1 >/dev/null && kill -0 $$ 2>/dev/null; do
    line="$1, $((SECONDS - start)) s  $(tail -n 1 "$2" 2>/dev/null | sed 's/\r$//; s/.*\r//')"
    if [ -t 1 ]; then
      printf '\r\033[K%s' "${line:0:width}"
    elif ((SECONDS - start >= next)); then
      echo "${line:0:width}"
      next=$((SECONDS - start + 15))
    fi
  done
  rm -f "$2"
}

attest_install() {
  local missing=() package
  for package in $attest_packages; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      echo "packages are missing; as root run:" >&2
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
      return 2
    fi
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}"
  attest_progress "reading package lists" "${as_root[@]}" apt-get update || return 2
  attest_progress "installing packages" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" || return 2
}

# attest_configure FOLDER [CMAKE OPTION]...: a configured folder is left as it is.
attest_configure() {
  local folder=$1
  shift
  [ -f "$folder/build.ninja" ] ||
    attest_progress "configuring ${folder##*/}" cmake -S "$attest_root" -B "$folder" -G Ninja "$@" || return 2
}

# attest_make FOLDER [CMAKE OPTION]...: configures the folder if need be, and builds. ATTEST_TARGETS, if set, are the
# targets; all otherwise.
attest_make() {
  attest_configure "$@" || return 2
  attest_progress "building ${1##*/}" ninja -C "$1" -j "${ATTEST_JOBS:-$(nproc)}" ${ATTEST_TARGETS:-}
}

# attest_axe FOLDER: the checker of accessibility that the test of pages runs in its browser, from a wheel of PyPI.
attest_axe() {
  [ ! -f "$1/axe.min.js" ] || return 0
  local wheel
  wheel=$(mktemp -d)
  attest_progress "fetching axe-core" python3 -m pip download --quiet --no-deps -d "$wheel" axe-playwright-python==0.1.8 || return 2
  python3 -m zipfile -e "$wheel"/*.whl "$wheel/content"
  mkdir -p "$1"
  cp "$wheel/content/axe_playwright_python/axe.min.js" "$1/"
  rm -rf "$wheel"
}

# The program alone in $attest_build: without the tests, and compiled several sources at a time.
attest_program() {
  attest_install
  ATTEST_TARGETS=attest attest_make "$attest_build" -DATTEST_WERROR=OFF -DATTEST_TESTS=OFF -DATTEST_UNITY=ON
}

# attest_warm PROGRAM: OpenCL drivers compile kernels when they are first used and keep them. Most of CLBlast's exist
# once a type: two types side by side take half the time. A failure shows in the run that follows.
attest_warm() {
  attest_progress "compiling OpenCL kernels, once a machine" attest_warm_types "$1" || true
}
attest_warm_types() { # PROGRAM
  local first
  "$1" check --backend clblast,opencl "seq=8 dim=8" "dtype=bf16 seq=8 dim=8" --threads 1 >/dev/null 2>&1 &
  first=$!
  "$1" check --backend clblast,opencl "dtype=f64 seq=8 dim=8" "dtype=f16 seq=8 dim=8" --threads 1 >/dev/null 2>&1 || true
  wait "$first"
}
