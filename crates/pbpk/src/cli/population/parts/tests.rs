use super::*;
use std::cell::Cell;
use std::sync::atomic::AtomicUsize;

/// A folder of its own, taken away at the end.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pbpk-parts-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SIZE: usize = 2;

fn opened(folder: &Path, count: usize) -> RunParts {
    let parts = RunParts::open(
        folder,
        "Id,Time\n".to_owned(),
        7,
        count * SIZE,
        SIZE,
        &Watch::default(),
    );
    parts.map_err(|_| "not opened").unwrap()
}

fn make_parts(folder: &Path, count: usize) -> RunParts {
    let parts = opened(folder, count);
    for part in 0..count {
        let failures = if part == 1 { "3,why\n" } else { "" };
        let rows = format!("{part},0\n");
        parts.write(part, &rows, failures).unwrap();
    }
    parts
}

#[test]
fn joining_ends_at_the_look_that_says_so_and_goes_on_to_the_same_bytes() {
    let folder = TestFolder::new("join");
    let count = 5;
    // Opening looks at every part that is there, joining before each that it adds.
    for phase in ["open", "join"] {
        for allowed in 0..count {
            let parts = make_parts(&folder.0, count);
            let looks = AtomicUsize::new(0);
            let ask = || {
                let over = looks.fetch_add(1, Ordering::Relaxed) >= allowed;
                over.then_some(Interrupt::Deadline)
            };
            let watch = Watch::new(Some(&ask));
            let failed = if phase == "open" {
                let head = parts.head.clone();
                RunParts::find_parts(&folder.0, head, count * SIZE, SIZE, &watch).err()
            } else {
                JoinedTables::begin(&parts).unwrap().finish(&watch).err()
            };
            let failed = failed.unwrap();
            assert_eq!(interrupt(&failed), Some(Interrupt::Deadline), "{phase}");
            assert_eq!(looks.load(Ordering::Relaxed), allowed + 1, "{phase}");
            assert!(!folder.0.join(RESULTS).exists());
            // Nothing was lost.
            assert!(opened(&folder.0, count).missing().is_empty());
        }
    }
    let parts = opened(&folder.0, count);
    let failures = JoinedTables::begin(&parts)
        .unwrap()
        .finish(&Watch::default());
    assert_eq!(failures.unwrap(), 1);
    let table = fs::read_to_string(folder.0.join(RESULTS)).unwrap();
    assert_eq!(table, "Id,Time\n0,0\n1,0\n2,0\n3,0\n4,0\n");
    let faults = fs::read_to_string(folder.0.join(FAILURES)).unwrap();
    assert_eq!(faults, "IndividualId,Error\n3,why\n");
}

#[test]
fn parts_are_joined_in_their_order_as_they_come() {
    let folder = TestFolder::new("order");
    let parts = opened(&folder.0, 3);
    let mut joined = JoinedTables::begin(&parts).unwrap();
    let watch = Watch::default();
    let length = || fs::metadata(folder.0.join(UNFINISHED)).unwrap().len();
    let before = length();
    parts.write(1, "b\n", "").unwrap();
    joined.follow(&watch).unwrap();
    assert_eq!(length(), before);
    parts.write(0, "a\n", "").unwrap();
    joined.follow(&watch).unwrap();
    assert_eq!(length(), before + 4);
    parts.write(2, "c\n", "").unwrap();
    assert_eq!(joined.finish(&watch).unwrap(), 0);
    let table = fs::read_to_string(folder.0.join(RESULTS)).unwrap();
    assert_eq!(table, "Id,Time\na\nb\nc\n");
}

#[test]
fn a_piece_that_cannot_be_made_leaves_the_file_as_it_was() {
    let folder = TestFolder::new("pieces");
    let file = folder.0.join("table.csv");
    write_whole(&file, b"old").unwrap();
    let left = Cell::new(1000);
    let pieces = std::iter::repeat_with(|| {
        left.set(left.get() - 1);
        if left.get() == 0 {
            return Err(Interrupt::Cancelled.into());
        }
        Ok("new")
    });
    let failed = write_pieces(&file, pieces).unwrap_err();
    assert_eq!(interrupt(&failed), Some(Interrupt::Cancelled));
    assert_eq!(fs::read(&file).unwrap(), b"old");
}

#[test]
fn a_changed_byte_changes_the_checksum() {
    let text = "17,0.5,1.25\n18,0.5,2.5\n#failures\n";
    let whole = checksum(text);
    for at in 0..text.len() {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1;
        assert_ne!(checksum(&String::from_utf8(bytes).unwrap()), whole, "{at}");
        assert_ne!(checksum(&text[..at]), whole, "{at}");
    }
    // A zero at the end is a byte like any other.
    assert_ne!(checksum("a"), checksum("a\0"));
}
