//! `aether:conflist`: the node's list, and its repair.

use crate::action::Action;
use crate::bindings::aether::base::types::Refusal;
use crate::bindings::aether::conflist::{edit, view};
use crate::ports::Binary;
use crate::state::State;

impl State {
    fn may_view(&self, name: &str) -> bool {
        self.grant.conflist.view.iter().any(|glob| glob.matches(name))
    }
}

impl view::Host for State {
    fn get_chain(&mut self) -> view::Chain {
        let seen = self.ports.conflist();
        view::Chain { state: seen.state.clone(), detail: seen.detail.clone(), file: seen.file.clone() }
    }

    fn get_binary(&mut self) -> view::Binary {
        match self.ports.conflist().binary {
            Binary::Right => view::Binary::Right,
            Binary::Wrong => view::Binary::Wrong,
            Binary::Missing => view::Binary::Missing,
            Binary::Unknown => view::Binary::Unknown,
        }
    }

    fn list_files(&mut self) -> Vec<view::FileInfo> {
        let seen = self.ports.conflist();
        let granted = seen.files.iter().filter(|file| self.may_view(&file.name));
        granted
            .map(|file| view::FileInfo {
                name: file.name.clone(),
                digest: file.digest.clone(),
                size: u32::try_from(file.bytes.len()).unwrap_or(u32::MAX),
                active: seen.file.as_ref() == Some(&file.name),
                uid: file.uid,
                modified: file.modified,
            })
            .collect()
    }

    fn read(&mut self, name: String) -> Result<Vec<u8>, view::ReadError> {
        if !self.may_view(&name) {
            return Err(view::ReadError::NotGranted);
        }
        let seen = self.ports.conflist();
        let file = seen.files.iter().find(|file| file.name == name);
        file.map(|file| file.bytes.to_vec()).ok_or(view::ReadError::NotFound)
    }

    fn wanted_entry(&mut self) -> Option<Vec<u8>> {
        self.ports.conflist().wanted.clone()
    }
}

impl edit::Host for State {
    fn replace(&mut self, name: String, expect: String, bytes: Vec<u8>) -> Result<u64, Refusal> {
        self.stage(Action::ReplaceList { name, expect, bytes })
    }

    fn derive(&mut self, conf: String, expect: String) -> Result<u64, Refusal> {
        self.stage(Action::DeriveList { conf, expect })
    }

    fn restore_plugin(&mut self) -> Result<u64, Refusal> {
        self.stage(Action::RestorePlugin)
    }
}
