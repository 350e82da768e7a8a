//! What a server has last listed, kept for whoever asks next in front of several servers.
//!
//! It is the server's own answer, as it came: what a caller may see of it, and under which names, is made of it
//! later (`call::basis` knows how long that stays true). It is kept only while the server would say that it has changed, and for a bounded time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ahash::AHashMap as HashMap;
use wire::jsonrpc::{member, string};
use wire::scan::Scan;
use wire::{Bounds, scan_reply};

use super::exchange::Exchange;
use super::link::Link;
use crate::byte_budget::ByteBudget;
use crate::message::announced::{Announced, changed_by};
use crate::message::method::List;
use crate::message::reply::Reply;

/// Most bytes of the lists of one link.
pub const KEPT_BYTES_MAX: usize = 1 << 20;
/// The same of all links of one server.
pub const KEPT_BYTES_OF_SERVER_MAX: usize = 16 << 20;
/// How old a list may become, in milliseconds.
pub const KEPT_MS_MAX: u64 = 60_000;
/// What a page takes beside its text, in bytes: so many pages without entries are bounded as well.
const PAGE_BYTES: usize = 256;

/// A page of a list, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    list: List,
    /// None for the first one.
    cursor: Option<String>,
}

impl Page {
    /// The page that a request asks for; none where it says more, which its server may answer otherwise.
    pub fn of(list: List, asked: &Scan<'_>) -> Option<Self> {
        if asked.params.iter().any(|(name, _)| name != "cursor") {
            return None;
        }
        let cursor = match member(&asked.params, "cursor") {
            None | Some("null") => None,
            Some(raw) => Some(string(raw)?.into_owned()),
        };
        Some(Self { list, cursor })
    }
}

/// For how long a server has been heard without a gap: how often it has opened its session, and which stretch
/// of listening to it this is.
pub(crate) type Heard = (u64, u64);

/// A page that a server is asked for, and how things were then: its answer is kept where they still are so.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Who is asked.
    link: Weak<Link>,
    page: Page,
    heard: Heard,
    /// How often the list had changed.
    changes: u64,
    asked_ns: u64,
}

/// Which of the answers of a link something was made of.
#[derive(Debug, Clone)]
pub(crate) struct KeptAs {
    link: Weak<Link>,
    page: Page,
    /// Among those that the link has kept.
    number: u64,
}

/// What a link knows of a page.
#[derive(Debug)]
pub(crate) enum Recalled {
    /// The answer.
    Kept(Exchange),
    /// Nothing; the answer may be kept.
    Ask(Asking),
    /// Nothing, and it is not kept either.
    Never,
}

/// The lists of a link.
#[derive(Debug)]
pub(super) struct Kept {
    lists: Mutex<Lists>,
    /// Byte budget of all links of the server.
    of_server: Arc<ByteBudget>,
}

#[derive(Debug, Default)]
struct Lists {
    /// What the server announces, as it said when it was first asked.
    announced: Announced,
    all: HashMap<List, Known>,
    bytes: usize,
    /// How many answers were kept.
    numbers: u64,
}

/// What is known of one list.
#[derive(Debug, Default)]
struct Known {
    /// How often the server has said that it is another now.
    changes: u64,
    pages: Option<Pages>,
}

/// The first pages of a list, without a gap.
#[derive(Debug)]
struct Pages {
    /// When the first one was asked for.
    asked_ns: u64,
    heard: Heard,
    /// With their numbers.
    all: HashMap<Option<String>, (u64, Reply)>,
    /// The cursor of the page behind them.
    next: Option<String>,
    bytes: usize,
}

impl Lists {
    /// Forgets a list; gives its bytes.
    fn forget(&mut self, list: List) -> usize {
        let known = self.all.get_mut(&list);
        let pages = known.and_then(|known| known.pages.take());
        let bytes = pages.map_or(0, |pages| pages.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        bytes
    }

    fn changes(&self, list: List) -> u64 {
        self.all.get(&list).map_or(0, |known| known.changes)
    }

    /// Where a page belongs that takes so many bytes: it is the first one, or the one behind those that are kept.
    fn place(
        &mut self,
        page: &Page,
        (asked_ns, heard): (u64, Heard),
        bytes: usize,
    ) -> Option<&mut Pages> {
        if self.bytes.saturating_add(bytes) > KEPT_BYTES_MAX {
            return None;
        }
        let pages = &mut self.all.entry(page.list).or_default().pages;
        match &page.cursor {
            None => Some(pages.get_or_insert_with(|| Pages {
                asked_ns,
                heard,
                all: HashMap::new(),
                next: None,
                bytes: 0,
            })),
            Some(cursor) => {
                let pages = pages.as_mut()?;
                let follows = pages.next.as_ref() == Some(cursor) && pages.heard == heard;
                // A server whose cursors lead in a circle is asked again where that begins.
                (follows && !pages.all.contains_key(&page.cursor)).then_some(pages)
            }
        }
    }
}

impl Kept {
    /// Returns an empty cache; the links of a server share this budget.
    pub fn new(of_server: &Arc<ByteBudget>) -> Self {
        Self {
            lists: Mutex::default(),
            of_server: Arc::clone(of_server),
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server has opened a session, with this result.
    pub fn opened(&self, result: &str) {
        self.lists().announced = Announced::of(result);
    }

    /// The server has said this.
    pub fn heard(&self, notification: &str) {
        let changed = changed_by(notification);
        if changed.is_empty() {
            return;
        }
        let mut lists = self.lists();
        for list in changed {
            self.of_server.release(lists.forget(*list));
            lists.all.entry(*list).or_default().changes += 1;
        }
    }

    /// Nothing will be asked for any more.
    pub fn clear(&self) {
        let lists = std::mem::take(&mut *self.lists());
        self.of_server.release(lists.bytes);
    }

    fn page<'l>(
        &self,
        lists: &'l mut Lists,
        page: &Page,
        (heard, now_ns): (Heard, u64),
    ) -> Option<&'l (u64, Reply)> {
        let pages = lists.all.get(&page.list)?.pages.as_ref()?;
        let age_ns = now_ns.saturating_sub(pages.asked_ns);
        if pages.heard != heard || age_ns >= KEPT_MS_MAX * 1_000_000 {
            self.of_server.release(lists.forget(page.list));
            return None;
        }
        lists
            .all
            .get(&page.list)?
            .pages
            .as_ref()?
            .all
            .get(&page.cursor)
    }

    /// Keeps an answer, unless something has happened since it was asked for; says as which it is kept.
    pub fn keep(&self, asking: Asking, heard: Option<Heard>, reply: &Reply) -> Option<KeptAs> {
        let Asking { page, changes, .. } = asking;
        let next = next_of(page.list, reply)?;
        let mut lists = self.lists();
        if heard != Some(asking.heard) || lists.changes(page.list) != changes {
            return None;
        }
        if page.cursor.is_none() {
            self.of_server.release(lists.forget(page.list));
        }
        let cursor_bytes = page.cursor.as_ref().map_or(0, String::len);
        let bytes = PAGE_BYTES + reply.frame.len() + cursor_bytes;
        let number = lists.numbers + 1;
        let pages = lists.place(&page, (asking.asked_ns, asking.heard), bytes)?;
        if !self.of_server.reserve(bytes) {
            return None;
        }
        pages
            .all
            .insert(page.cursor.clone(), (number, reply.clone()));
        pages.next = next;
        pages.bytes += bytes;
        lists.bytes += bytes;
        lists.numbers = number;
        Some(KeptAs {
            link: asking.link,
            page,
            number,
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The cursor of the next page where an answer is a page of this list; `Some(None)` for the last one.
#[expect(clippy::option_option, reason = "read at once by its one caller")]
fn next_of(list: List, reply: &Reply) -> Option<Option<String>> {
    if reply.is_error {
        return None;
    }
    let scan = scan_reply(reply.payload().as_bytes(), &Bounds::default()).ok()?;
    member(&scan.members, list.member()).filter(|raw| raw.starts_with('['))?;
    match member(&scan.members, "nextCursor") {
        None | Some("null") => Some(None),
        Some(raw) => Some(Some(string(raw)?.into_owned())),
    }
}

impl Link {
    /// Its lists, and what holds for them now, where this one may be kept.
    fn keeping(&self, list: List) -> Option<(MutexGuard<'_, Lists>, Heard, u64)> {
        // A server that is spared is missing from a list, whether it is remembered or not.
        let heard = self.heard().filter(|_| self.is_worth_asking())?;
        let (now_ns, again) = (self.gate().mono_ns(), self.announced_again());
        let lists = self.kept.lists();
        let announced = again.unwrap_or(lists.announced);
        announced.has(list).then_some((lists, heard, now_ns))
    }

    /// What is known of a page of its server's lists. Nothing leaves for that, and nothing counts as answered.
    pub(crate) fn recall(self: &Arc<Self>, page: &Page) -> Recalled {
        let Some((mut lists, heard, now_ns)) = self.keeping(page.list) else {
            return Recalled::Never;
        };
        if let Some((number, reply)) = self.kept.page(&mut lists, page, (heard, now_ns)) {
            let (reply, number) = (reply.clone(), *number);
            drop(lists);
            let kept_as = KeptAs {
                link: Arc::downgrade(self),
                page: page.clone(),
                number,
            };
            return Recalled::Kept(Exchange::recalled(self, reply, kept_as));
        }
        Recalled::Ask(Asking {
            link: Arc::downgrade(self),
            page: page.clone(),
            heard,
            changes: lists.changes(page.list),
            asked_ns: now_ns,
        })
    }
}

impl KeptAs {
    /// Whether this is what the link would give now.
    pub fn is_kept_by(&self, link: &Arc<Link>) -> bool {
        let recalled = || {
            let (mut lists, heard, now_ns) = link.keeping(self.page.list)?;
            let (number, _) = link.kept.page(&mut lists, &self.page, (heard, now_ns))?;
            Some(*number)
        };
        std::ptr::eq(self.link.as_ptr(), Arc::as_ptr(link)) && recalled() == Some(self.number)
    }
}

impl Asking {
    /// Whether it was this link that was asked.
    pub fn is_of(&self, link: &Arc<Link>) -> bool {
        std::ptr::eq(self.link.as_ptr(), Arc::as_ptr(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = r#"{"capabilities":{"tools":{"listChanged":true}}}"#;

    fn page(cursor: Option<&str>) -> Page {
        Page {
            list: List::Tools,
            cursor: cursor.map(str::to_owned),
        }
    }

    fn asking(kept: &Kept, cursor: Option<&str>, heard: Heard) -> Asking {
        Asking {
            link: Weak::new(),
            page: page(cursor),
            heard,
            changes: kept.lists().changes(List::Tools),
            asked_ns: 0,
        }
    }

    fn reply(next: Option<&str>, padding: usize) -> Reply {
        let more = next.map_or_else(String::new, |next| format!(r#","nextCursor":"{next}""#));
        let name = "x".repeat(padding);
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"{name}"}}]{more}}}}}"#
        );
        Reply::read(frame.into_bytes()).unwrap()
    }

    fn kept() -> Kept {
        let kept = Kept::new(&ByteBudget::new(KEPT_BYTES_OF_SERVER_MAX));
        kept.opened(TOOLS);
        kept
    }

    fn put(kept: &Kept, cursor: Option<&str>, next: Option<&str>) {
        let asking = asking(kept, cursor, (0, 0));
        kept.keep(asking, Some((0, 0)), &reply(next, 1));
    }

    fn has(kept: &Kept, cursor: Option<&str>) -> bool {
        let page = page(cursor);
        kept.page(&mut kept.lists(), &page, ((0, 0), 0)).is_some()
    }

    #[test]
    fn pages_are_kept_behind_the_first_one_without_a_gap() {
        let kept = kept();
        put(&kept, Some("2"), None);
        assert!(!has(&kept, Some("2")), "there is no first page");
        put(&kept, None, Some("2"));
        put(&kept, Some("3"), None);
        assert!(has(&kept, None) && !has(&kept, Some("3")));
        put(&kept, Some("2"), Some("3"));
        put(&kept, Some("3"), None);
        assert!(has(&kept, Some("2")) && has(&kept, Some("3")));
        let bytes = kept.lists().bytes;
        put(&kept, None, Some("2"));
        assert!(has(&kept, None) && !has(&kept, Some("2")), "begun anew");
        assert!(kept.lists().bytes < bytes);
        kept.clear();
        assert!(!has(&kept, None) && kept.lists().bytes == 0);
    }

    #[test]
    fn a_circle_of_cursors_takes_no_more_than_its_pages() {
        let kept = kept();
        put(&kept, None, Some("a"));
        for _ in 0..3 {
            put(&kept, Some("a"), Some("a"));
        }
        let lists = kept.lists();
        let pages = lists.all[&List::Tools].pages.as_ref().unwrap();
        assert_eq!((pages.all.len(), pages.bytes), (2, lists.bytes));
    }

    #[test]
    fn a_list_that_arrives_behind_its_change_is_not_kept() {
        let kept = kept();
        let early = asking(&kept, None, (0, 0));
        kept.heard("notifications/tools/list_changed");
        kept.keep(early, Some((0, 0)), &reply(None, 1));
        assert!(!has(&kept, None));
        // Nor is one during which the server was not heard.
        for heard in [None, Some((0, 1)), Some((1, 0))] {
            kept.keep(asking(&kept, None, (0, 0)), heard, &reply(None, 1));
            assert!(!has(&kept, None), "{heard:?}");
        }
        put(&kept, None, None);
        for other in [
            "notifications/prompts/list_changed",
            "notifications/message",
        ] {
            kept.heard(other);
            assert!(has(&kept, None), "{other}");
        }
        kept.heard("notifications/tools/list_changed");
        assert!(!has(&kept, None));
    }

    #[test]
    fn a_list_is_kept_for_so_long_and_while_its_server_is_heard() {
        let at = |heard, now_ms: u64| {
            let kept = kept();
            put(&kept, None, None);
            let now_ns = now_ms * 1_000_000;
            let found = kept
                .page(&mut kept.lists(), &page(None), (heard, now_ns))
                .is_some();
            assert_eq!(found, kept.lists().bytes > 0, "what is old is gone");
            found
        };
        assert!(at((0, 0), KEPT_MS_MAX - 1));
        assert!(!at((0, 0), KEPT_MS_MAX));
        assert!(!at((0, 1), 0) && !at((1, 0), 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let kept = kept();
        let whole = asking(&kept, None, (0, 0));
        kept.keep(whole, Some((0, 0)), &reply(None, KEPT_BYTES_MAX));
        assert!(!has(&kept, None));
        let half = reply(Some("2"), KEPT_BYTES_MAX / 2);
        kept.keep(asking(&kept, None, (0, 0)), Some((0, 0)), &half);
        let rest = asking(&kept, Some("2"), (0, 0));
        kept.keep(rest, Some((0, 0)), &reply(None, KEPT_BYTES_MAX / 2));
        assert!(has(&kept, None) && !has(&kept, Some("2")));
        assert!(kept.lists().bytes <= KEPT_BYTES_MAX);
    }

    #[test]
    fn what_all_links_of_a_server_keep_is_bounded_and_given_back() {
        let of_server = ByteBudget::new(KEPT_BYTES_OF_SERVER_MAX);
        let large = reply(None, KEPT_BYTES_MAX / 2);
        let links: Vec<Kept> = (0..40).map(|_| Kept::new(&of_server)).collect();
        let mut found = 0;
        for kept in &links {
            kept.keep(asking(kept, None, (0, 0)), Some((0, 0)), &large);
            assert!(of_server.reserved() <= KEPT_BYTES_OF_SERVER_MAX);
            found += usize::from(has(kept, None));
        }
        assert_eq!(found, 31, "with what each takes beside its text");
        links[0].heard("notifications/tools/list_changed");
        links[1].clear();
        put(&links[39], None, None);
        assert!(has(&links[39], None), "the budget has bytes again");
        drop(links);
        assert_eq!(of_server.reserved(), 0);
    }

    #[test]
    fn only_lists_are_kept() {
        for frame in [
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"prompts":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":7}}"#,
        ] {
            let kept = kept();
            let reply = Reply::read(frame.into()).unwrap();
            kept.keep(asking(&kept, None, (0, 0)), Some((0, 0)), &reply);
            assert!(!has(&kept, None), "{frame}");
        }
    }

    #[test]
    fn a_request_that_says_more_than_its_page_is_not_answered_from_memory() {
        let of = |params: &str| {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"{params}}}"#);
            let scan = wire::scan_request(frame.as_bytes(), &Bounds::default()).unwrap();
            Page::of(List::Tools, &scan)
        };
        for first in ["", r#","params":{}"#, r#","params":{"cursor":null}"#] {
            assert_eq!(of(first), Some(page(None)), "{first}");
        }
        assert_eq!(of(r#","params":{"cursor":"é"}"#), Some(page(Some("é"))));
        assert_eq!(of(r#","params":{"cursor":7}"#), None);
        assert_eq!(of(r#","params":{"cursor":"2","_meta":{}}"#), None);
    }
}
