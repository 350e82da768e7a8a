//! What a row of the table is made of.

/// One scenario and what it comes to, in every cell unless the row says otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What the row pins, in one sentence.
    pub(crate) about: &'static str,
    /// The policy file.
    pub(crate) policy: &'static str,
    /// The mock behind the gate: the words after `durward-lab mock`.
    pub(crate) server: &'static [&'static str],
    /// Further flags, of `durward run` and `durward serve` alike.
    pub(crate) flags: &'static [&'static str],
    /// The revision of the Legacy cells.
    pub(crate) legacy: &'static str,
    pub(crate) script: &'static [Step],
    /// The frames that the client receives, in order.
    pub(crate) client: &'static [&'static str],
    /// The frames that the server receives after the handshake, in order.
    pub(crate) server_got: &'static [&'static str],
    /// The records of the journal about calls, in order.
    pub(crate) journal: &'static [&'static str],
    /// Whether the order of messages and records is free, as JSON-RPC leaves it for batches; records then have
    /// no numbers.
    pub(crate) unordered: bool,
    /// How long a cell that is known to be red waits for a frame that is not to come, in seconds: longer than
    /// a right build takes.
    pub(crate) red_wait_s: u64,
    /// What stands in the place of the mock's words in the cells of the built-in server: tools that it has.
    pub(crate) inside: &'static [(&'static str, &'static str)],
    /// Where a cell differs, and why that is right.
    pub(crate) except: &'static [Except],
    /// Cells that cannot exist, and why.
    pub(crate) lacks: &'static [Lack],
}

/// What rows have in common.
pub(crate) const PLAIN: Row = Row {
    name: "",
    about: "",
    policy: "",
    server: &["echo"],
    flags: &[],
    legacy: "2025-11-25",
    script: &[],
    client: &[],
    server_got: &[],
    journal: &[],
    unordered: false,
    red_wait_s: 4,
    inside: &[],
    except: &[],
    lacks: &[],
};

/// One thing that the client, a person or an operator does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// The client sends a frame.
    Send(&'static str),
    /// The client waits for this many further frames.
    Receive(usize),
    /// The client answers the last request that it received with this result.
    Answer(&'static str),
    /// The client cancels its request with this id, as its edge and era do.
    Cancel(&'static str),
    /// The client is gone, without a word.
    Vanish,
    /// A person answers what waits, by `durward approvals`.
    Person(&'static str),
    /// Another policy is written and taken up.
    Reload(&'static str),
    /// Waits until the server has received a frame that contains this.
    ServerHas(&'static str),
    /// Waits until the journal has a record with this member and value.
    JournalHas(&'static str, &'static str),
}

/// What is compared of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    /// The frames that the client received.
    Client,
    /// The statuses of the client's HTTP requests: 200 for a request, 202 for anything else.
    Status,
    /// The frames that the server received.
    Server,
    /// The records about calls.
    Journal,
    /// Records whose era, transport, client or server is not that of the cell.
    Marks,
    /// The exit code of `durward`.
    Exit,
}

impl Column {
    pub(crate) const ALL: [Self; 6] = [
        Self::Client,
        Self::Status,
        Self::Server,
        Self::Journal,
        Self::Marks,
        Self::Exit,
    ];
}

/// Cells in which one column is another, rightly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Except {
    /// `EDGE/ERA/PEER`
    pub(crate) cells: &'static str,
    pub(crate) column: Column,
    pub(crate) expect: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Cells that do not exist.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lack {
    /// `EDGE/ERA/PEER`
    pub(crate) cells: &'static str,
    pub(crate) why: &'static str,
}

/// Cells in which today's build falls short of the row, and what it does instead. The list may only shrink:
/// a cell that has come right fails until its entry is removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Red {
    /// The number of the defect.
    pub(crate) defect: &'static str,
    /// The row's name.
    pub(crate) row: &'static str,
    /// `EDGE/ERA/PEER`
    pub(crate) cells: &'static str,
    pub(crate) column: Column,
    /// Whether it is a race, so that the cell may come right as well.
    pub(crate) sometimes: bool,
    /// What the column is today.
    pub(crate) today: &'static [&'static str],
}
