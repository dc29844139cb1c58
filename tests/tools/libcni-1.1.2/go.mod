module aether.internal/tools/libcni-1.1.2

go 1.24

require (
	github.com/containerd/go-cni v1.1.6
	github.com/containernetworking/cni v1.1.2
)
