use gate::{Pass, PeerId, Spent};
use mcp::upstream::{Frame, Upstream};

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

fn send(upstream: &mut Upstream, spent: Spent<Frame>) {
    let _ = upstream.send_pass(Forged(spent));
}

fn main() {
    let _ = send;
}
