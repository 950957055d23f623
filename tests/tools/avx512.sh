#!/usr/bin/env bash
# avx512.sh PROGRAM [ARGUMENT]...: runs a program of a build on an emulated processor with AVX-512 (Skylake-X), for
# machines that have none. Linux boots in Bochs; the program finds the suites, no driver for OpenCL, and one processor
# of 12 million instructions a second: `unit_tests --gtest_filter='SimdMask*'` takes some six minutes. Its output, behind
# that of the kernel's last lines, goes to standard output. Needs the packages below, and a kernel that apt loads.
# The build must not need what this processor lacks: ATTEST_ARCH=x86-64-v3, or native on one that has no more.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: avx512.sh PROGRAM [ARGUMENT]..." >&2; exit 2; }
program=$(realpath "$1")
shift
packages="bochs bochs-term bochsbios vgabios grub-pc-bin grub-common xorriso mtools busybox-static zstd"
missing=$(for one in $packages; do dpkg -s "$one" >/dev/null 2>&1 || printf ' %s' "$one"; done)
[ -z "$missing" ] || { echo "avx512.sh: apt-get install --no-install-recommends$missing" >&2; exit 1; }
cases=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../cases")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
apt-get download "$kernel" >/dev/null 2>&1 || { echo "avx512.sh: apt-get download $kernel failed" >&2; exit 1; }
dpkg-deb -x linux-image-*.deb kernel

mkdir -p root/{bin,proc,sys,dev,tmp,lib64,share/attest} iso/boot/grub
cp /bin/busybox root/bin/
cp "$program" root/bin/program
strip root/bin/program
cp -r "$cases" root/share/attest/
cp -L /lib64/ld-linux-x86-64.so.2 root/lib64/
ldd "$program" | awk '/=>/ { print $3 }' | while read -r library; do
  mkdir -p "root$(dirname "$library")"
  cp -L "$library" "root$library"
done
{
  echo '#!/bin/busybox sh'
  echo '/bin/busybox mount -t proc proc /proc'
  echo '/bin/busybox mount -t sysfs sys /sys'
  echo '/bin/busybox mount -t devtmpfs dev /dev'
  echo '/bin/busybox mount -t tmpfs tmp /tmp'
  echo 'exec >/dev/ttyS0 2>&1'
  printf 'HOME=/tmp /bin/program'
  [ $# -eq 0 ] || printf ' %q' "$@"
  echo
  # shellcheck disable=SC2016
  echo 'echo "exit code $?"'
  echo '/bin/busybox poweroff -f'
} >root/init
chmod +x root/init
(cd root && find . | busybox cpio -o -H newc 2>/dev/null) | zstd -q >iso/boot/initrd
cp kernel/boot/vmlinuz-* iso/boot/vmlinuz
# Bochs and the kernel don't agree on the sizes of compacted states: without XSAVEC and XSAVES (321, 323) they do.
cat >iso/boot/grub/grub.cfg <<'END'
set timeout=0
menuentry attest {
  linux /boot/vmlinuz console=ttyS0 nokaslr mitigations=off loglevel=3 lpj=40000 nopku noxsaves clearcpuid=321,323
  initrd /boot/initrd
}
END
grub-mkrescue -o cd.iso iso >/dev/null 2>&1
cat >bochsrc <<END
display_library: rfb, options="timeout=0"
cpu: model=corei7_skylake_x, count=1, ips=10000000
memory: guest=768, host=768
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=cd.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=serial
log: bochs.log
panic: action=fatal
END
# Debian's Bochs has its debugger, which waits for a command.
mkfifo commands
exec 3<>commands
echo c >&3
touch serial
tail -f serial &
reader=$!
bochs -q -f bochsrc <&3 >bochs.out 2>&1 || true
sleep 1
kill "$reader"
grep -aq '^exit code 0' serial || { echo "avx512.sh: the program failed, or Bochs ended early" >&2; exit 1; }
