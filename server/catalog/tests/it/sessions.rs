//! What a session holds, for how long, and who may set things in it.

use std::sync::Arc;
use std::time::Duration;

use asof_catalog::{Error, Naming, PreparedStatement, Session, SessionKey, Sessions};

use crate::Fixed;

const TTL: Duration = Duration::from_secs(600);

fn sessions() -> (Sessions, Arc<Fixed>) {
    let (env, fixed) = Fixed::env();
    (Sessions::new(env, TTL, "lake", "main"), fixed)
}

fn prepared(sql: &str) -> PreparedStatement {
    PreparedStatement { sql: sql.to_owned(), parameters: Vec::new() }
}

#[test]
fn a_session_lives_for_its_ttl_after_its_last_use() {
    let (sessions, clock) = sessions();
    let key = sessions.open("anonymous").key().clone();
    clock.pass(599);
    assert!(sessions.get(&key).is_ok());
    clock.pass(599);
    assert!(sessions.get(&key).is_ok(), "use renews it");
    clock.pass(601);
    assert!(matches!(sessions.get(&key), Err(Error::NoSession)));
    assert_eq!(sessions.len(), 0, "found expired, it is gone");
    assert!(matches!(sessions.get(&SessionKey("made up".to_owned())), Err(Error::NoSession)));
}

#[test]
fn sweeping_drops_the_expired_and_keeps_those_in_use() {
    let (sessions, clock) = sessions();
    let running = sessions.open("anonymous");
    let idle = sessions.open("anonymous").key().clone();
    clock.pass(601);
    let fresh = sessions.open("anonymous").key().clone();
    assert_eq!(sessions.sweep(), 1);
    assert!(sessions.get(&idle).is_err());
    assert!(sessions.get(&fresh).is_ok());
    let key = running.key().clone();
    drop(running);
    clock.pass(599);
    assert!(sessions.get(&key).is_ok(), "the statement that ran counted as use");
}

#[test]
fn closing_releases_everything_once() {
    let (sessions, _) = sessions();
    let session = sessions.open("anonymous");
    session.prepare(prepared("SELECT 1")).unwrap();
    let (key, weak) = (session.key().clone(), Arc::downgrade(&session));
    drop(session);
    assert!(sessions.close(&key));
    assert!(weak.upgrade().is_none(), "nothing else holds it");
    assert!(!sessions.close(&key));
    assert!(sessions.is_empty());
}

#[test]
fn what_would_be_lost_is_refused_until_the_key_comes_back() {
    let (sessions, _) = sessions();
    let offered = sessions.offer("anonymous");
    fn refused(session: &Session) {
        let required = |r: Result<(), Error>| assert!(matches!(r, Err(Error::SessionRequired { .. })), "{r:?}");
        required(session.set("time_zone", "UTC"));
        required(session.reset(None));
        required(session.set_current("lake", "other"));
        required(session.create_temp_view("v", "SELECT 1", false));
        required(session.drop_temp_view("v").map(|_| ()));
    }
    refused(&offered);
    let handle = offered.prepare(prepared("SELECT 1")).unwrap();
    let again = sessions.get(offered.key()).unwrap();
    again.set("time_zone", "Asia/Seoul").unwrap();
    assert_eq!(again.prepared(&handle).unwrap().sql, "SELECT 1", "it is the same session");
    let transient = sessions.transient("anonymous");
    transient.confirm();
    refused(&transient);
    assert!(sessions.get(transient.key()).is_err());
}

#[test]
fn settings_are_shown_with_their_defaults() {
    let (sessions, _) = sessions();
    let session = sessions.open("anonymous");
    let shown = |name: &str| session.settings().get(name).cloned();
    assert_eq!(shown("time_zone").as_deref(), Some("UTC"));
    assert_eq!(shown("catalog").as_deref(), Some("lake"));
    assert_eq!(shown("timestamps").as_deref(), Some("zoned"));
    session.set("TIMEZONE", "europe/berlin").unwrap();
    session.set("spark.sql.ansi.enabled", "true").unwrap();
    session.set("statement_timeout", "90s").unwrap();
    assert_eq!(session.time_zone(), "Europe/Berlin");
    assert_eq!(session.statement_timeout(), Some(Duration::from_secs(90)));
    assert_eq!(shown("spark.sql.ansi.enabled").as_deref(), Some("true"));
    assert_eq!(session.get("Time Zone").unwrap(), "Europe/Berlin");
    let unknown = session.set("time_zon", "UTC").unwrap_err().to_string();
    assert!(unknown.contains("time_zone"), "{unknown}");
    let bad = session.set("time_zone", "Mars/Base").unwrap_err().to_string();
    assert!(bad.contains("Mars/Base"), "{bad}");
    assert_eq!(session.time_zone(), "Europe/Berlin", "a refused value changes nothing");
    session.set_current("lake", "sales").unwrap();
    session.reset(Some("time_zone")).unwrap();
    assert_eq!(session.time_zone(), "UTC");
    session.reset(None).unwrap();
    assert_eq!(session.current(), ("lake".to_owned(), "main".to_owned()));
    assert_eq!(shown("spark.sql.ansi.enabled"), None);
}

#[test]
fn names_are_completed_from_the_session() {
    let (sessions, _) = sessions();
    let session = sessions.open("anonymous");
    session.set_current("lake", "sales").unwrap();
    let full = |parts: &[&str]| session.qualify(&parts.iter().map(|&p| p.to_owned()).collect::<Vec<_>>()).map(|n| n.to_string());
    assert_eq!(full(&["t"]).unwrap(), "lake.sales.t");
    assert_eq!(full(&["s", "t"]).unwrap(), "lake.s.t");
    assert_eq!(full(&["c", "s", "t"]).unwrap(), "c.s.t");
    assert!(full(&[]).is_err());
    assert!(full(&["a", "b", "c", "d"]).is_err());
}

#[test]
fn temporary_views_and_prepared_statements() {
    let (sessions, _) = sessions();
    let session = sessions.open("anonymous");
    session.create_temp_view("v", "SELECT 1", false).unwrap();
    assert!(matches!(session.create_temp_view("v", "SELECT 2", false), Err(Error::AlreadyExists { .. })));
    session.create_temp_view("v", "SELECT 2", true).unwrap();
    assert_eq!(session.temp_views().get("v").map(String::as_str), Some("SELECT 2"));
    assert!(session.drop_temp_view("v").unwrap());
    assert!(!session.drop_temp_view("v").unwrap());
    let handle = session.prepare(prepared("SELECT ?")).unwrap();
    assert!(session.bind(&handle, vec![1, 2]));
    assert_eq!(session.prepared(&handle).unwrap().parameters, [1, 2]);
    assert!(session.close_prepared(&handle));
    assert!(!session.close_prepared(&handle));
    assert!(!session.bind(&handle, Vec::new()));
}

#[test]
fn a_session_restored_from_a_ticket_reads_texts_the_same_way() {
    let (sessions, _) = sessions();
    let session = sessions.open("alice");
    session.set("time_zone", "+09:00").unwrap();
    session.set_current("lake", "sales").unwrap();
    session.create_temp_view("v", "SELECT 1", false).unwrap();
    let naming: Naming = session.naming();
    let restored = sessions.restore("alice", naming);
    assert_eq!(restored.time_zone(), "+09:00");
    assert_eq!(restored.current(), session.current());
    assert_eq!(restored.temp_views(), session.temp_views());
    assert_eq!(restored.principal(), "alice");
    assert_eq!(sessions.len(), 1, "it is not one of the live ones");
}

#[test]
fn a_flood_of_sessions_nobody_keeps_does_not_grow() {
    let (env, clock) = Fixed::env();
    let sessions = Sessions::new(env, TTL, "lake", "main").with_most(20);
    let kept = sessions.open("anonymous").key().clone();
    let holding = sessions.offer("anonymous");
    holding.prepare(prepared("SELECT 1")).unwrap();
    let holding = holding.key().clone();
    for _ in 0..100 {
        clock.pass(1);
        assert!(!sessions.offer("anonymous").is_transient());
        assert!(sessions.len() <= 20);
    }
    assert!(sessions.get(&kept).is_ok());
    assert!(sessions.get(&holding).is_ok());
    for _ in 0..100 {
        sessions.open("anonymous");
    }
    assert!(sessions.len() <= 20);
    assert!(sessions.open("anonymous").is_transient(), "all of them are kept by somebody: the next is for one request");
}
