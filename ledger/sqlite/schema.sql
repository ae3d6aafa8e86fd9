-- The tables of the ledger. Views for people are made beside them (views.sql.tmpl).
-- Amount columns are ANY: an INTEGER of pico-dollars, or TEXT where it does not fit 64 bits. Never a REAL.
-- Quantities are a JSON array in the meter's order. set_hash keeps its 64 bits in a signed INTEGER.

CREATE TABLE IF NOT EXISTS gm_meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT;

-- R11: a row is (account, window), its cells its detail. usage is the sum of the cells, published or not.
-- A row is some hundred bytes and is written several times, every one of an account next to others: so its place is by rowid, at the end
-- of the table, and not in the order of accounts, where every new row would move its neighbours.
CREATE TABLE IF NOT EXISTS gm_row (
  account    TEXT    NOT NULL,
  window_end INTEGER NOT NULL,
  version    TEXT    NOT NULL,
  state      TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  requests   INTEGER NOT NULL,
  quantities TEXT    NOT NULL,
  set_hash   INTEGER NOT NULL,
  amount     ANY     NOT NULL, -- the row alone
  adjustment ANY     NOT NULL, -- after it was final
  overflow   TEXT,             -- the total, where it, amount or adjustment does not fit 64 bits
  source     TEXT    NOT NULL,
  unpriced   INTEGER NOT NULL,
  published_requests   INTEGER NOT NULL, -- what the journal's deltas have added up to
  published_quantities TEXT    NOT NULL,
  published_set_hash   INTEGER NOT NULL,
  published            ANY     NOT NULL,
  live       INTEGER NOT NULL, -- 1: the merge still holds it in memory
  card       TEXT    NOT NULL,
  list       TEXT    NOT NULL,
  cells      TEXT    NOT NULL, -- JSON
  UNIQUE (account, window_end, version)
) STRICT;
CREATE INDEX IF NOT EXISTS gm_row_live ON gm_row (live) WHERE live = 1;

CREATE TABLE IF NOT EXISTS gm_firing (
  seq        INTEGER PRIMARY KEY,
  kind       TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  account    TEXT    NOT NULL,
  window_end INTEGER NOT NULL,
  version    TEXT    NOT NULL,
  requests   INTEGER NOT NULL,
  quantities TEXT    NOT NULL,
  set_hash   INTEGER NOT NULL,
  total      ANY     NOT NULL,
  delta_requests   INTEGER NOT NULL,
  delta_quantities TEXT    NOT NULL,
  delta_set_hash   INTEGER NOT NULL,
  delta      ANY     NOT NULL,
  source     TEXT    NOT NULL,
  unpriced   INTEGER NOT NULL,
  card       TEXT    NOT NULL,
  list       TEXT    NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS gm_item (
  item         INTEGER PRIMARY KEY,
  verdict      TEXT    NOT NULL,
  filter       TEXT    NOT NULL,
  partition    INTEGER NOT NULL,
  first_offset INTEGER NOT NULL,
  offsets      TEXT    NOT NULL, -- JSON
  id           TEXT    NOT NULL, -- JSON, the identity's parts
  reference    TEXT    NOT NULL, -- JSON
  kind         TEXT    NOT NULL,
  account      TEXT    NOT NULL,
  sku          TEXT    NOT NULL,
  tier         INTEGER NOT NULL,
  time         INTEGER NOT NULL,
  window_end   INTEGER NOT NULL,
  status       TEXT    NOT NULL,
  requests     INTEGER NOT NULL,
  quantities   TEXT    NOT NULL,
  set_hash     INTEGER NOT NULL,
  judged       INTEGER NOT NULL, -- the watermark
  door         INTEGER NOT NULL,
  abandoned    INTEGER NOT NULL,
  superseded   INTEGER NOT NULL,
  amount       ANY     NOT NULL,
  source       TEXT    NOT NULL,
  unpriced     TEXT    NOT NULL, -- JSON, names of quantities without a price
  version      TEXT    NOT NULL,
  card         TEXT    NOT NULL,
  list         TEXT    NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS gm_dead_letter (
  letter    INTEGER PRIMARY KEY,
  partition INTEGER NOT NULL,
  "offset"  INTEGER NOT NULL,
  log_time  INTEGER,
  reason    TEXT    NOT NULL,
  raw       BLOB    NOT NULL,
  UNIQUE (partition, "offset") -- a record is read once
) STRICT;

CREATE TABLE IF NOT EXISTS gm_price (
  sku            TEXT    NOT NULL,
  tier           INTEGER NOT NULL,
  quantity       TEXT    NOT NULL,
  effective_from INTEGER NOT NULL,
  source         TEXT    NOT NULL,
  revision       TEXT    NOT NULL,
  pico           INTEGER NOT NULL, -- pico-dollars a unit
  PRIMARY KEY (sku, tier, quantity, effective_from, source, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS gm_lost (
  partition   INTEGER NOT NULL,
  from_offset INTEGER NOT NULL,
  to_offset   INTEGER NOT NULL,
  window_from INTEGER NOT NULL,
  window_to   INTEGER NOT NULL,
  PRIMARY KEY (partition, from_offset)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS gm_position (
  partition INTEGER PRIMARY KEY,
  position  TEXT NOT NULL -- JSON
) STRICT;
