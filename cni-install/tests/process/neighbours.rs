//! Everybody else's files, and what is left after an uninstall.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::support::{FLANNEL, LIST, Node};

/// The other residents of net.d.
fn residents(node: &Node) {
    for name in [
        "calico-kubeconfig",
        "ZZZ-linkerd-cni-kubeconfig",
        "05-cilium.conflist.cilium_bak",
        ".kubernetes-cni-keep",
        ".10-flannel.conflist.tmp",
        ".tmp-kuberouter-cfg",
        "10-kindnet.conflist.temp",
        "ovnkube-123",
        "cni.lock",
        "README",
        ".10-x.conflist.swp",
        "10-x.conflist~",
        "#10-x.conflist#",
        "x.CONFLIST",
        "y.conflist.aether-bak",
    ] {
        node.put(name, format!("{name} mentions aether-cni\n"));
    }
    node.put("nerdctl-bridge.conflist", FLANNEL.replace("cbr0", "nerdctl"));
    node.put("99-loopback.conf", r#"{"cniVersion":"0.3.1","name":"lo","type":"loopback"}"#);
    node.put("zz-broken.conflist", "{ not a list,");
    for dir in ["multus.d", "whereabouts.d", "x.conflist", "nerdctl"] {
        std::fs::create_dir(node.conf().join(dir)).unwrap();
        node.put(&format!("{dir}/kubeconfig"), "secret");
    }
    node.put(
        "multus.d/aether-cni.conflist",
        r#"{"name":"n","plugins":[{"type":"a"},{"type":"aether-cni"}]}"#,
    );
    symlink("/nowhere", node.conf().join("zz-dangling")).unwrap();
    std::fs::write(node.bin().join("flannel"), "elf").unwrap();
}

#[test]
fn i14_nobody_elses_file_is_touched_by_install_upgrade_or_uninstall() {
    let node = Node::flannel();
    residents(&node);
    let ours = [node.list(), node.wanted(), node.plugin()];
    let others = |node: &Node| -> Vec<_> {
        node.tree().into_iter().filter(|(path, _)| !ours.contains(path)).collect()
    };
    let before = others(&node);
    node.install().ends(0);
    assert_eq!(others(&node), before);
    node.release("v2");
    node.run(&["--no-wait", "--install-id", "two"]).ends(0);
    assert_eq!(others(&node), before);
    node.run(&["uninstall", "--remove-binary"]).ends(0);
    assert_eq!(others(&node), before);
}

/// I3: the tree before an install and after an uninstall differs in nothing but the documented state.
#[test]
fn i14_i02_i3_after_an_uninstall_nothing_is_left_but_marker_and_lock() {
    let node = Node::flannel();
    residents(&node);
    let before = node.tree();
    node.install().ends(0);
    node.run(&["uninstall", "--remove-binary"]).ends(0);
    assert_eq!(node.tree(), before);
    let state: BTreeSet<_> = std::fs::read_dir(node.state())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(state, BTreeSet::from(["edit.lock".to_owned(), "uninstalled".to_owned()]));
}

/// I2: twice, and on a node that never had it.
#[test]
fn i01_i2_uninstall_is_idempotent_also_where_nothing_was_installed() {
    let node = Node::flannel();
    for _ in 0..3 {
        node.uninstall().ends(0);
        assert_eq!(node.get(LIST), FLANNEL.as_bytes());
    }
    std::fs::remove_dir_all(node.conf()).unwrap();
    std::fs::remove_dir_all(node.bin()).unwrap();
    node.run(&["uninstall", "--remove-binary"]).ends(0);
}

#[test]
fn i01_uninstall_takes_our_entry_out_of_every_list_and_not_only_the_first() {
    let node = Node::flannel();
    let names = [LIST, "05-earlier.conflist", "87-podman.conflist"];
    let original = |name: &str| FLANNEL.replace("cbr0", &format!("net-{name}"));
    for name in names {
        // Each came first at some time.
        let with_ours =
            original(name).replace("\n  ]\n", ",\n    {\n      \"type\": \"aether-cni\"\n    }\n  ]\n");
        node.put(name, with_ours);
        assert_eq!(node.ours(name).len(), 1);
    }
    node.uninstall().ends(0);
    for name in names {
        assert_eq!(String::from_utf8(node.get(name)).unwrap(), original(name));
    }
}

/// F2, F9: no shell and no other program is run on the host.
#[test]
fn i01_f2_f9_no_other_program_is_run() {
    let node = Node::flannel();
    for args in [&["--no-wait"][..], &["uninstall"]] {
        let (ran, trace) = node.strace(&["-etrace=execve,execveat,clone,fork,vfork".to_owned()], args);
        ran.ends(0);
        let runs = trace.lines().filter(|line| line.contains("exec")).count();
        assert_eq!(runs, 1, "{trace}");
    }
}

/// F10: with a read-only root file system, only the mounts of the three directories are written.
#[test]
fn i12_f10_files_are_made_in_the_three_directories_alone() {
    let node = Node::flannel();
    std::fs::create_dir(node.state()).unwrap();
    let calls = "-etrace=openat,?open,?creat,?mkdir,?mkdirat,?rename,?renameat,?renameat2,?unlink,?unlinkat,?symlinkat";
    for args in [&["--no-wait"][..], &["uninstall", "--remove-binary"]] {
        let (ran, trace) = node.strace(&["-y".to_owned(), calls.to_owned()], args);
        ran.ends(0);
        let writes = |line: &&str| {
            !line.contains(" open")
                || ["O_CREAT", "O_WRONLY", "O_RDWR"].iter().any(|flag| line.contains(flag))
        };
        let changed: Vec<&str> =
            trace.lines().filter(writes).filter(|line| !line.contains("ENOENT")).collect();
        assert!(changed.len() > 2, "{trace}");
        let places: [PathBuf; 3] = [node.conf(), node.bin(), node.state()];
        for line in changed {
            assert!(places.iter().any(|place| line.contains(&*place.to_string_lossy())), "{line}");
        }
    }
}
