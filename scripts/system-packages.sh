#!/usr/bin/env bash
# Installs the system packages: a C++ compiler, without which nothing is built, and those for HIP,
# without which HIP tasks are skipped. Uses apt-get when it may; otherwise says what to run.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "$*" >&2; }

as_root=()
can_install=false
if command -v apt-get >/dev/null; then
  if [[ $(id -u) == 0 ]]; then
    can_install=true
  elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
    can_install=true
  fi
fi

updated=false
install() {
  $can_install || return 1
  if ! $updated; then
    "${as_root[@]}" apt-get update -qq </dev/null >/dev/null || return 1
    updated=true
  fi
  say "Installing $* ..."
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

# The compiler that candidates in HIP are built with: clang 17 or newer, and the lld that matches it.
have_clang() {
  local version
  for version in 22 21 20 19 18 17; do
    command -v "clang++-$version" >/dev/null && return 0
  done
  command -v clang++ >/dev/null &&
    [[ $(clang++ --version | grep -oE 'version [0-9]+' | head -1 | cut -d' ' -f2) -ge 17 ]]
}

install_clang() {
  local version
  for version in 19 18 17 20 21 22; do
    if apt-cache show "clang-$version" "lld-$version" >/dev/null 2>&1; then
      install "clang-$version" "lld-$version" && return 0
    fi
  done
  return 1
}

# What finds the source lines of a prebuilt code object, for built HIP programs.
have_symbolizer() {
  local version
  for version in 22 21 20 19 18 17; do
    command -v "llvm-symbolizer-$version" >/dev/null && return 0
  done
  return 1
}

install_symbolizer() {
  local version
  for version in 22 21 20 19 18 17; do
    if command -v "clang++-$version" >/dev/null; then
      install "llvm-$version"
      return
    fi
  done
}

have_hip_headers() {
  [[ -e /usr/include/hip/hip_runtime.h || -e /opt/rocm/include/hip/hip_runtime.h ]]
}

have_device_libraries() {
  compgen -G '/usr/lib/*/amdgcn/bitcode/ocml.bc' >/dev/null ||
    [[ -e /opt/rocm/amdgcn/bitcode/ocml.bc || -e /usr/amdgcn/bitcode/ocml.bc ]]
}

needed=()
command -v g++ >/dev/null || needed+=(g++)
command -v make >/dev/null || needed+=(make)
scripts/find-python.sh >/dev/null || needed+=(python3-venv python3-dev)
if [[ ${#needed[@]} -gt 0 ]] && ! install "${needed[@]}"; then
  say "Missing: ${needed[*]}. Please run: sudo apt-get install ${needed[*]}"
  exit 1
fi

hip_line="sudo apt-get install clang-19 lld-19 rocm-device-libs libamdhip64-dev"
if ! have_clang || ! have_hip_headers || ! have_device_libraries; then
  # The lists must be there before a version of clang is chosen from them.
  if $can_install && ! $updated; then
    "${as_root[@]}" apt-get update -qq </dev/null >/dev/null && updated=true
  fi || true
  have_clang || install_clang || true
  have_hip_headers || install libamdhip64-dev || true
  have_device_libraries || install rocm-device-libs || true
fi
have_symbolizer || install_symbolizer || true
if ! have_clang || ! have_hip_headers || ! have_device_libraries; then
  say "HIP tasks will be skipped, everything else works. For them, run: $hip_line"
fi
