//! Lists that are symbolic links (I02).

use crate::support::{ENTRY, FLANNEL, LIST, Node, chained_text, is};

fn linked(target: &std::path::Path, node: &Node) {
    std::os::unix::fs::symlink(target, node.conf().join(LIST)).unwrap();
}

#[test]
fn i02_the_target_is_replaced_beside_itself_the_link_stays_and_the_directory_is_poked() {
    let node = Node::empty();
    let elsewhere = node.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let target = elsewhere.join("list.json");
    std::fs::write(&target, FLANNEL).unwrap();
    for link in [target.clone(), "../elsewhere/list.json".into()] {
        let _ = std::fs::remove_file(node.conf().join(LIST));
        std::fs::write(&target, FLANNEL).unwrap();
        linked(&link, &node);
        let watch = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::NONBLOCK).unwrap();
        let mask = rustix::fs::inotify::WatchFlags::MODIFY | rustix::fs::inotify::WatchFlags::DELETE;
        rustix::fs::inotify::add_watch(&watch, node.conf(), mask).unwrap();
        is(&node.repair(ENTRY), "done", &[]);
        assert_eq!(std::fs::read_link(node.conf().join(LIST)).unwrap(), link);
        assert_eq!(std::fs::read_to_string(&target).unwrap(), chained_text(FLANNEL, ENTRY));
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = rustix::fs::inotify::Reader::new(&watch, &mut buffer);
        let mut seen = Vec::new();
        while let Ok(event) = reader.next() {
            seen.push(event.events());
        }
        let any = |flag| seen.iter().any(|events| events.contains(flag));
        assert!(any(rustix::fs::inotify::ReadFlags::MODIFY), "{seen:?}");
        assert!(any(rustix::fs::inotify::ReadFlags::DELETE), "{seen:?}");
        assert!(node.temporaries().is_empty());
    }
}

#[test]
fn i02_a_target_outside_what_is_mounted_is_a_clear_refusal() {
    let node = Node::empty();
    linked("/nowhere/at/all/list.json".as_ref(), &node);
    let error = aether_list_keeper::links::target(&node.conf().join(LIST)).unwrap_err().to_string();
    for word in ["/nowhere/at/all/list.json", "outside what is mounted", "mount its directory"] {
        assert!(error.contains(word), "{error}");
    }
    let dangling = node.root().join("state/none");
    std::fs::remove_file(node.conf().join(LIST)).unwrap();
    linked(&dangling, &node);
    let error = aether_list_keeper::links::target(&node.conf().join(LIST)).unwrap_err().to_string();
    assert!(error.contains("cannot be followed"), "{error}");
}
