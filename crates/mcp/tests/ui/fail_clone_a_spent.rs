use gate::Spent;
use mcp::upstream::Frame;

fn copy(spent: &Spent<Frame>) -> Spent<Frame> {
    spent.clone()
}

fn main() {
    let _ = copy;
}
