//! The files that the configuration is made of, names or runs, and those that these name in turn.

use std::ffi::OsStr;
use std::path::PathBuf;

use toolkit::files::GuardedFiles;

use super::Settings;
use crate::places::Places;
use crate::program;

impl Settings {
    /// Returns every such file, the configuration itself included.
    pub fn guarded(&self, places: &Places) -> GuardedFiles {
        let mut files = GuardedFiles::default();
        let GuardedFiles { closed, read_only } = &mut files;
        closed.extend(self.file.clone());
        closed.extend(self.policy.value.clone());
        closed.extend(self.witness.as_ref().map(|file| file.value.clone()));
        if let Some(tls) = &self.tls {
            closed.push(tls.key.value.clone());
            read_only.push(tls.cert.value.clone());
        }
        read_only.extend(
            self.identity
                .issuers
                .iter()
                .filter_map(|own| own.ca.clone()),
        );
        for provider in &self.models.providers {
            let cloud = provider.cloud.as_ref();
            closed.extend(cloud.and_then(|cloud| cloud.files()).map(PathBuf::from));
            read_only.extend(provider.ca.clone());
        }
        for server in &self.servers {
            closed.extend(server.policy.as_ref().map(|own| own.value.clone()));
            if let Some(http) = &server.http {
                closed.extend(http.client_key.clone());
                read_only.extend([&http.client_cert, &http.ca].into_iter().flatten().cloned());
            }
            if let Some(command) = &server.command {
                let words = std::iter::once(&command.program).chain(&command.args);
                let words: Vec<&OsStr> = words.map(|word| OsStr::new(&word.value)).collect();
                let folder = command.directory.as_ref().or(places.current.as_ref());
                read_only.extend(program::files(&words, folder.map(PathBuf::as_path)));
            }
        }
        read_only.extend(self.notifier(places));
        for builtin in self
            .servers
            .iter()
            .filter_map(|server| server.builtin.as_ref())
        {
            files.merge(builtin.guarded());
        }
        files
    }

    /// Returns the program of `approval.notify.command`, and the files among its arguments: it runs as the user, without
    /// any confinement.
    fn notifier(&self, places: &Places) -> Vec<PathBuf> {
        let command = &self.approval.notify.value.command;
        let Some((program, arguments)) = command.split_first() else {
            return Vec::new();
        };
        let found = program::found(program.as_ref()).unwrap_or_else(|| program.into());
        let words = [found.as_os_str()];
        let mut files = program::files(&words, places.current.as_deref());
        let arguments = arguments.iter().map(PathBuf::from);
        files.extend(arguments.filter(|path| path.is_absolute() && path.is_file()));
        files
    }
}
