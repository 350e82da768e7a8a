use super::*;

#[test]
fn frames_are_read_as_they_were_written_and_damage_is_seen() {
    let mut wire = Vec::new();
    write(&mut wire, b'a', b"one").unwrap();
    write(&mut wire, b'b', b"").unwrap();
    let mut from = wire.as_slice();
    assert_eq!(read(&mut from).unwrap(), (b'a', b"one".to_vec()));
    assert_eq!(read(&mut from).unwrap(), (b'b', Vec::new()));
    assert!(read(&mut from).is_err());
    for end in 1..wire.len() - 9 {
        assert!(read(&mut &wire[..end]).is_err(), "{end}");
    }
    let mut long = vec![b'a'];
    long.extend_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(
        read(&mut long.as_slice()).unwrap_err().to_string(),
        "a frame is too long"
    );
}
