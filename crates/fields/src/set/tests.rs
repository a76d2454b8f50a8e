use super::*;

#[test]
fn a_block_is_kept_when_it_is_small_or_half_full() {
    let block = |capacity, length| {
        let mut block = block::Block::with_capacity(capacity);
        block.push(&vec![b'x'; length]);
        block.freeze()
    };
    assert!(is_worth_keeping(&block(4096, 1)));
    assert!(is_worth_keeping(&block(16384, 8192)));
    assert!(!is_worth_keeping(&block(16384, 8191)));
}
