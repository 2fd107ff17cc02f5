//! What the file promises of any bytes, for `crate::fuzzing`.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use redb::{Builder, StorageBackend};

use super::{File, Opener, builder, create, format, record};
use crate::{Backend as _, BackendError, Batch, Change, Effect, Entry};

const STORE: &str = "s";
/// No file of these tests is larger, whatever its damaged head says.
const LARGEST: usize = 64 << 20;

pub(crate) fn record(bytes: &[u8]) {
    let Some((end, rest)) = bytes.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(*end).min(rest.len()));
    let (first, behind) = record::keys_of(STORE);
    let key = [&*first, key].concat();
    assert!(first <= key && key < behind, "a key of a store lies among those of another");
    let Some(found) = record::read(STORE, &key, value) else { return };

    let mut again = Vec::new();
    record::key(&mut again, STORE, found.bucket, found.key);
    assert_eq!(again, key, "a key was read as another");
    let entry = Entry {
        created: found.created,
        modified: found.modified,
        value: Bytes::copy_from_slice(found.value),
    };
    let mut again = vec![0; record::value_len(&entry)];
    record::write_value(&mut again, &entry);
    assert_eq!(again, value, "a value was read as another");
}

pub(crate) fn damage(bytes: &[u8]) {
    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(whole);
    let mut image = WHOLE.clone();
    for edit in bytes.chunks_exact(4) {
        let [a, b, c, change] = *edit else { continue };
        let at = u32::from_be_bytes([0, a, b, c]) as usize % image.len().max(1);
        if let Some(byte) = image.get_mut(at) {
            *byte ^= change;
        }
    }
    let image = Image::holding(image);
    let opened = File::on(Path::new("image"), image.opener(), format::STEPS);
    let Ok(mut file) = opened else { return };
    let found = BackendError::from_panic(|| contents_of(&mut file));
    // redb may panic on what is damaged here, too, as the committer's thread knows.
    drop(BackendError::from_panic(|| drop(file)));
    if let Ok(Ok(found)) = found {
        assert!(found == contents(), "a damaged file was taken for a whole one");
    }
}

type Contents = BTreeMap<(String, String), (u64, Vec<u8>)>;

/// Some keys in several pages.
fn contents() -> Contents {
    let entry = |n: u64| {
        let at = (format!("b{}", n % 3), format!("k{n}"));
        (at, (n + 2, vec![n as u8; n as usize * 97 % 1500]))
    };
    (0..40).map(entry).collect()
}

fn contents_of(file: &mut File) -> Result<Contents, BackendError> {
    let mut contents = Contents::new();
    file.load(STORE, &mut |stored| {
        let at = (stored.bucket.to_owned(), stored.key.to_owned());
        contents.insert(at, (stored.modified, stored.value.to_vec()));
    })?;
    Ok(contents)
}

/// A file with these contents. Its last commit is not the one that brought them, because damage to the
/// last commit alone is what a crash looks like, and makes redb go back to the one before.
#[expect(clippy::expect_used, reason = "there is nothing to try without it")]
fn whole() -> Vec<u8> {
    let image = Image::holding(Vec::new());
    let database = builder().create_with_backend(image.clone()).expect("memory is a disk");
    create::fill(&database).expect("memory can be written to");
    drop(database);
    let open = || File::on(Path::new("image"), image.opener(), format::STEPS);
    let changes = contents().into_iter().map(|((bucket, key), (revision, value))| {
        let entry = Entry { created: revision, modified: revision, value: Bytes::from(value) };
        let effect = Effect::Put(entry);
        Change { revision, bucket: bucket.into(), key: key.into(), effect }
    });
    let stores: BTreeMap<Arc<str>, Vec<Change>> =
        BTreeMap::from([(STORE.into(), changes.collect())]);
    let mut file = open().expect("what was just made is whole");
    file.commit(&Batch { number: 1, stores }).expect("memory can be written to");
    drop(file);
    drop(open().expect("what was closed is whole"));
    image.bytes().clone()
}

/// A file in memory.
#[derive(Clone, Debug)]
struct Image(Arc<Mutex<Vec<u8>>>);

impl Image {
    fn holding(bytes: Vec<u8>) -> Self {
        Image(Arc::new(Mutex::new(bytes)))
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opener(&self) -> Opener {
        let image = self.clone();
        Box::new(move |builder: &Builder| builder.create_with_backend(image.clone()))
    }
}

fn place(offset: u64, length: usize) -> io::Result<std::ops::Range<usize>> {
    let begin = usize::try_from(offset).map_err(|_| ErrorKind::UnexpectedEof)?;
    let end = begin.checked_add(length).ok_or(ErrorKind::UnexpectedEof)?;
    Ok(begin..end)
}

impl StorageBackend for Image {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let place = place(offset, out.len())?;
        out.copy_from_slice(self.bytes().get(place).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let length = usize::try_from(len).ok().filter(|length| *length <= LARGEST);
        self.bytes().resize(length.ok_or(ErrorKind::StorageFull)?, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let place = place(offset, data.len())?;
        let mut bytes = self.bytes();
        bytes.get_mut(place).ok_or(ErrorKind::UnexpectedEof)?.copy_from_slice(data);
        Ok(())
    }
}
