use gate::{Pass, PeerId, Spent};
use mcp::upstream::{Frame, Link};

struct Forged(Spent<Frame>);

impl Pass for Forged {
    type Request = Frame;
    type Open = ();
    fn is_for(&self, _: &PeerId) -> bool {
        true
    }
    fn spend(self, _: &PeerId) -> Result<(Spent<Frame>, ()), Self> {
        Ok((self.0, ()))
    }
}

fn send(link: &Link, spent: Spent<Frame>) {
    let _ = link.send(Forged(spent));
}

fn main() {
    let _ = send;
}
