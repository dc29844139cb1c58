# pid 1 of a node, run by `unshare` inside fresh net, mount, pid, ipc and uts namespaces. It lays out the production
# paths, says that it is ready, and then only holds the namespaces and reaps; its death ends everything in the node.
#
# D     the node's directory on the host
# TOOLS the directory of the built tools
#
# Standard input is a pipe from whoever starts the node: its end ends the node, unless the word "stay" came before.
set -eu
exec 3<&0 </dev/null

# The shell itself opens the file, and /proc still is the host's: this is our pid as the host sees it.
read -r pid rest </proc/self/stat
echo "$pid" >"$D/init.pid.new"
mv "$D/init.pid.new" "$D/init.pid"

# The node's directory and the tools keep a place whatever gets covered below.
mount -t tmpfs -o mode=755 mnt /mnt
mkdir /mnt/node /mnt/tools
mount --bind "$D" /mnt/node
mount --bind "$TOOLS" /mnt/tools
cd /

mount -t overlay -o lowerdir=/etc,upperdir=/mnt/node/etc.upper,workdir=/mnt/node/etc.work etc /etc
mkdir -p /etc/cni
mount --bind /mnt/node/etc.cni /etc/cni
mount --bind /mnt/node/var.lib /var/lib
mount --bind /mnt/node/opt /opt
mount --bind /mnt/node/tmp /tmp
mount -t tmpfs -o mode=755 run /run
mount -t proc proc /proc
# A boot of its own, so that a restart of the node in the same directory is a reboot.
mount --bind /mnt/node/boot_id /proc/sys/kernel/random/boot_id

mkdir -p /etc/cni/net.d /opt/cni/bin /run/flannel /run/netns /run/containerd /var/lib/cni /var/lib/containerd
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
: >/mnt/node/ready

set +e
# In the background, so that orphans are reaped meanwhile.
{ read -r word <&3 && [ "$word" = stay ]; } &
wait $! || exit 0
exec 3<&-
while :; do
  sleep 1000000 &
  wait $!
done
