# Sourced by run.sh and test.sh: installs what is missing, configures and builds. Does nothing the second time.
#
# Root or sudo installs Debian's packages; without either the exact line to run is printed.

attest_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
attest_build=${ATTEST_BUILD:-$attest_root/build}

attest_packages="cmake ninja-build g++ git libeigen3-dev libxtensor-dev libxtensor-blas-dev libxsimd-dev libopenblas-dev
  opencl-headers opencl-clhpp-headers ocl-icd-opencl-dev pocl-opencl-icd libclblast-dev libgtest-dev libgmock-dev
  libbenchmark-dev libcli11-dev libfmt-dev nlohmann-json3-dev libpugixml-dev libmpfr-dev"

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
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "installing failed; the log is $log" >&2
    return 2
  fi
  rm -f "$log"
}

# attest_make FOLDER [CMAKE OPTION]...: a configured folder is built without configuring again. ATTEST_TARGETS, if set,
# are the targets; all otherwise.
attest_make() {
  local folder=$1
  shift
  if [ ! -f "$folder/build.ninja" ]; then
    cmake -S "$attest_root" -B "$folder" -G Ninja "$@" >"$folder.configure.log" 2>&1 ||
      { tail -20 "$folder.configure.log" >&2; return 2; }
    rm -f "$folder.configure.log"
  fi
  ninja -C "$folder" -j "${ATTEST_JOBS:-$(nproc)}" --quiet ${ATTEST_TARGETS:-}
}
