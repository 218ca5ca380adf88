# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# Becomes `systemd --system`, as the first process of a machine that it makes of this one's files.
#
#   unshare --fork --pid --mount --uts --ipc --mount-proc sh boot_systemd.sh boot MANAGER CONSOLE FOLDER...
#
# Descriptor 9 is cgroup.procs of an empty group of cgroup2: systemd has all groups below it, and no
# others. The machine may write to /run, /tmp, /etc and parts of /var, which are its own and empty
# (/etc: a copy), and sees of homes and of /tmp the FOLDERs alone. All else is read-only, the kernel's
# settings too. Of the units of this machine it has those that order the others, and the journal.
set -eu

verb=$1
shift
if [ "$verb" = boot ]; then
  echo 0 >&9
  exec 9>&- unshare --cgroup sh "$0" become "$@"
fi
manager=$1
console=$2
shift 2

of_its_own() { # MODE FOLDER: an empty one
  mount -t tmpfs -o "mode=$1" tmpfs "$2"
}

mount --make-rprivate /
while mountpoint -q /run/netns; do umount --recursive --lazy /run/netns; done
of_its_own 755 /run
mkdir /run/kept
number=0
for folder in "$@"; do
  number=$((number + 1))
  mkdir "/run/kept/$number"
  mount --bind "$folder" "/run/kept/$number"
done
for folder in /tmp /var/tmp; do of_its_own 1777 "$folder"; done
for folder in /var/lib /var/cache /var/log /home /root; do of_its_own 755 "$folder"; done
number=0
for folder in "$@"; do
  number=$((number + 1))
  mkdir -p "$folder"
  mount --move "/run/kept/$number" "$folder"
done

cp -a /etc /run/etc
rm -rf /run/etc/systemd /run/etc/machine-id
mkdir -p /run/etc/systemd/system /run/units
tr -d - </proc/sys/kernel/random/uuid >/run/etc/machine-id
printf '[Journal]\nStorage=volatile\nAudit=no\nReadKMsg=no\nRateLimitBurst=0\n' >/run/etc/systemd/journald.conf
printf '[Manager]\nDefaultEnvironment=%s\n' "$SERVICE_ENVIRONMENT" >/run/etc/systemd/system.conf
mount --bind /run/etc /etc
for unit in sysinit basic multi-user local-fs sockets timers paths slices network network-online shutdown umount; do
  cp -L "${manager%/*}/system/$unit.target" /run/units/
done
mkdir /run/units/sysinit.target.wants
for kind in socket service; do
  cp -L "${manager%/*}/system/systemd-journald.$kind" /run/units/
  ln -s "../systemd-journald.$kind" /run/units/sysinit.target.wants/
done

mkdir /run/dev
of_its_own 755 /run/dev
for node in null zero full random urandom tty; do
  touch "/run/dev/$node"
  mount --bind "/dev/$node" "/run/dev/$node"
done
touch /run/dev/console
mount --bind "$console" /run/dev/console
mkdir /run/dev/shm /run/dev/pts
of_its_own 1777 /run/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts /run/dev/pts
ln -s pts/ptmx /run/dev/ptmx
ln -s /proc/self/fd /run/dev/fd
mount --move /run/dev /dev

mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /
mount --make-rshared / # services' credentials reach them so; outside of containers, systemd does this

exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
  SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/systemd/system:/run/units \
  SYSTEMD_GENERATOR_PATH=/run/none SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/run/none \
  SYSTEMD_PROC_CMDLINE=quiet \
  "$manager" --system --unit=multi-user.target --show-status=no <"/dev/console" >/dev/console 2>&1
