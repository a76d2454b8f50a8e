//! Where each program serves: what is made before it starts, what it is told of it, and what goes
//! when it has ended.

use std::fs::DirBuilder;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use event::Address;
use settings::HttpSocket;
use spawn::{Port, Socket};

use crate::programs::Outfit;

/// The folders of this process, so that none is used twice.
static FOLDERS: AtomicU32 = AtomicU32::new(0);
/// Names that are tried for one: others may have ended without having tidied up.
const TRIES: u32 = 1000;

/// Where one program serves. Its file goes with it.
pub(super) struct Home {
    pub(super) address: Address,
    /// Nobody else is given the port meanwhile.
    _port: Option<Port>,
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // It may never have made it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Where the programs of one pool serve, by their places.
pub(super) struct Homes {
    socket: HttpSocket,
    arguments: Vec<String>,
    /// Made for the first program that needs it.
    folder: Option<Folder>,
    kept: Vec<Option<Home>>,
}

impl Homes {
    pub(super) const fn new(socket: HttpSocket, arguments: Vec<String>) -> Self {
        Self { socket, arguments, folder: None, kept: Vec::new() }
    }

    /// One for the program at a place, and what that is started with.
    ///
    /// # Errors
    /// What the system says: no folder, no descriptor, no port.
    pub(super) fn make(&mut self, place: usize) -> io::Result<(Home, Outfit)> {
        self.leave(place);
        let mut outfit = Outfit::default();
        let home = match self.socket {
            HttpSocket::Inherited => {
                let path = self.path(place)?;
                outfit.socket = Some(Socket::bind(&path)?);
                Home { address: Address::Unix(path), _port: None }
            }
            HttpSocket::Path => {
                let path = self.path(place)?;
                let text = path.display().to_string();
                self.tell(&mut outfit, "{socket}", "ROADSTEAD_SOCKET", text);
                Home { address: Address::Unix(path), _port: None }
            }
            HttpSocket::Port => {
                let port = Port::keep()?;
                self.tell(&mut outfit, "{port}", "PORT", port.number().to_string());
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
                Home { address: Address::Internet(address), _port: Some(port) }
            }
        };
        Ok((home, outfit))
    }

    fn tell(&self, outfit: &mut Outfit, word: &str, variable: &str, value: String) {
        let written = self.arguments.iter().map(|argument| argument.replace(word, &value));
        outfit.arguments = Some(written.collect());
        outfit.env.push((variable.to_owned(), value));
    }

    fn path(&mut self, place: usize) -> io::Result<PathBuf> {
        let folder = match &mut self.folder {
            Some(folder) => folder,
            none => none.insert(Folder::make(&base())?),
        };
        Ok(folder.0.join(place.to_string()))
    }

    pub(super) fn keep(&mut self, place: usize, home: Home) {
        if self.kept.len() <= place {
            self.kept.resize_with(place + 1, || None);
        }
        self.kept[place] = Some(home);
    }

    pub(super) fn leave(&mut self, place: usize) {
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = None;
        }
    }
}

/// A folder that this user alone may enter. It goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn make(base: &Path) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("roadstead-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                    tries += 1;
                }
                made => return made.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever a program left there is gone with the folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Where such folders stand: what the service manager or the session gave us, else where all
/// temporary files are.
fn base() -> PathBuf {
    let given = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"].into_iter().filter_map(std::env::var_os);
    let mut given = given.map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir());
    given.next().unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_told_by_its_words_and_leaves_nothing() {
        let arguments = vec!["-b".to_owned(), "unix:{socket}".to_owned(), "{port}".to_owned()];
        let mut homes = Homes::new(HttpSocket::Path, arguments.clone());
        let (home, outfit) = homes.make(3).unwrap();
        let Address::Unix(path) = &home.address else { panic!("a path") };
        let path = path.clone();
        let told = ("ROADSTEAD_SOCKET".to_owned(), path.display().to_string());
        assert_eq!(outfit.env, [told]);
        let words = outfit.arguments.unwrap();
        assert_eq!(words[1..], [format!("unix:{}", path.display()), "{port}".to_owned()]);
        std::fs::write(&path, "").unwrap();
        homes.keep(3, home);
        homes.leave(3);
        assert!(!path.exists());
        drop(homes);
        assert!(!path.parent().unwrap().exists());

        let mut homes = Homes::new(HttpSocket::Port, arguments);
        let (home, outfit) = homes.make(0).unwrap();
        let Address::Internet(address) = &home.address else { panic!("a port") };
        assert_eq!(outfit.env, [("PORT".to_owned(), address.port().to_string())]);
        assert_eq!(outfit.arguments.unwrap()[2], address.port().to_string());

        let mut homes = Homes::new(HttpSocket::Inherited, Vec::new());
        let (first, outfit) = homes.make(0).unwrap();
        assert!(outfit.socket.is_some() && outfit.arguments.is_none());
        homes.keep(0, first);
        // The next at this place finds no file of the one before.
        homes.make(0).unwrap();
    }
}
