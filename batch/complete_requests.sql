-- The complete truth of a requests meter (R15): no door, no lateness, ids matched across partitions and never forgotten, in the order
-- log time, partition, offset; a missing log time is 0. An id is one request.
WITH last AS ({{last}}),

-- The plain case first, for it is nearly all of a log: one start and one end, in any order. Every other id is judged by the full rules below.
-- Hashes tell the two apart because they are cheap: what is odd is every id of a hash that does not stand on one start and one end. A hash
-- never decides: what it brings together is a pair only if the whole ids are the same, and where ids share a hash by chance all of them go
-- the long way.
odd AS (SELECT id_hash FROM ({{log}}) AS l WHERE kind <> 'progress' GROUP BY id_hash HAVING count(*) <> 2 OR count(account) <> 1),
pairs AS (
  SELECT CASE WHEN {{same "x" "s"}} THEN 1 ELSE 0 END AS plain,
         s.part, s.log_offset AS s_off, {{ids "s."}}, s.id_hash{{references ", s.$"}}, s.account, s.sku{{attributes ", s.a#"}}{{starts ", s.q#"}},
         x.part AS x_part, x.log_offset AS x_off, x.t AS x_t, x.kind AS x_kind, x.status{{ends ", x.q#"}}
  FROM (SELECT l.* FROM ({{log}}) AS l LEFT JOIN odd AS o ON o.id_hash = l.id_hash WHERE l.kind = 'start' AND o.id_hash IS NULL) AS s
  JOIN (SELECT l.* FROM ({{log}}) AS l WHERE kind <> 'start' AND kind <> 'progress') AS x ON x.id_hash = s.id_hash
),
rest AS (SELECT id_hash FROM odd UNION ALL SELECT id_hash FROM pairs WHERE plain = 0),
near AS (
  SELECT l.*, CASE WHEN kind = 'start' THEN 'start' WHEN kind = 'progress' THEN 'progress' ELSE 'end' END AS side,
         row_number() OVER (PARTITION BY {{ids ""}} ORDER BY log_time, part, log_offset) AS place
  FROM ({{log}}) AS l
  WHERE id_hash IN (SELECT id_hash FROM rest)
),
ranked AS (             -- R3: the first start and the first end count (nth = 1), the others are copies
  SELECT n.*, row_number() OVER (PARTITION BY {{ids ""}}, side ORDER BY place) AS nth
  FROM near AS n
  WHERE side <> 'progress'
),
lives AS (
  SELECT {{ids ""}}, max(id_hash) AS id_hash,
         max(CASE WHEN side = 'start' THEN place END) AS s_place,
         max(CASE WHEN side = 'start' THEN part END) AS s_part,
         max(CASE WHEN side = 'start' THEN log_offset END) AS s_off,
         max(CASE WHEN side = 'start' THEN t END) AS s_t,
         max(CASE WHEN side = 'start' THEN payload_hash END) AS s_payload,
         max(account) AS account, max(sku) AS sku{{starts ", max(q#) AS q#"}}{{attributes ", max(a#) AS a#"}}{{references ", max(CASE WHEN side = 'start' THEN $ END) AS $"}},
         max(CASE WHEN side = 'end' THEN part END) AS x_part,
         max(CASE WHEN side = 'end' THEN log_offset END) AS x_off,
         max(CASE WHEN side = 'end' THEN t END) AS x_t,
         max(CASE WHEN side = 'end' THEN payload_hash END) AS x_payload,
         max(CASE WHEN side = 'end' THEN kind END) AS x_kind,
         max(CASE WHEN side = 'end' THEN status END) AS x_status{{ends ", max(q#) AS q#"}}{{references ", max(CASE WHEN side = 'end' THEN $ END) AS x_$"}}
  FROM ranked
  WHERE nth = 1
  GROUP BY {{ids ""}}
),
-- R7, R15: of each end quantity the greatest running total of all progress after the start; totals never add.
told AS (
  SELECT {{ids "v."}}{{ends ", max(p.q#) AS q#"}}
  FROM lives AS v
  JOIN near AS p ON {{same "v" "p"}}
  WHERE p.side = 'progress' AND p.place > v.s_place
  GROUP BY {{ids "v."}}
),
-- The last watermark that counts is that of the start's partition, of a lone end its own's. b1, b2.. are the quantities of the abandoned
-- record (a whole is at least the sum of its parts).
fates AS (
  SELECT v.*, v.s_t + {{A}} AS d{{abandoned "v" "p"}},
         CASE WHEN v.s_off IS NULL AND f.w_end >= v.x_t + {{A}} THEN 'orphan'
              WHEN v.s_off IS NULL THEN 'held'
              WHEN v.x_off IS NOT NULL THEN 'completed'
              WHEN f.w_end >= v.s_t + {{A}} THEN 'abandoned'
              ELSE 'open' END AS fate
  FROM lives AS v
  JOIN last AS f ON f.part = coalesce(v.s_part, v.x_part)
  LEFT JOIN told AS p ON {{same "v" "p"}}
),
billable AS (
  SELECT part, s_off AS off, x_part, x_off, {{ids ""}}, id_hash{{references ", $"}}, x_kind AS kind, account, sku, x_t AS t, status, 'ended' AS manner{{all ", q#"}}{{attributes ", a#"}}
  FROM pairs
  WHERE plain = 1
  UNION ALL             -- however late, at the time of its first end
  SELECT s_part, s_off, x_part, x_off, {{ids ""}}, id_hash{{references ", $"}}, x_kind, account, sku, x_t, x_status, 'ended'{{all ", q#"}}{{attributes ", a#"}}
  FROM fates
  WHERE fate = 'completed'
  UNION ALL
  SELECT s_part, s_off, NULL, NULL, {{ids ""}}, id_hash{{references ", $"}}, 'start', account, sku, d, 'abandoned', 'abandoned'{{all ", b#"}}{{attributes ", a#"}}
  FROM fates
  WHERE fate = 'abandoned'
),
weighed AS (SELECT b.*, {{windowEnd "t"}} AS window_end, {{filter "status" "q"}} AS filter FROM billable AS b),
single AS (             -- R14: records that are no part of a billable one
  SELECT CASE WHEN fate = 'orphan' THEN 'orphan' ELSE 'open' END AS verdict, x_part AS part, x_off AS off, {{ids ""}}, id_hash{{references ", x_$ AS $"}}, x_kind AS kind,
         account, sku, x_t AS t, x_status AS status{{ofEnd ", q#"}}
  FROM fates
  WHERE fate IN ('orphan', 'held')
  UNION ALL
  SELECT 'open', s_part, s_off, {{ids ""}}, id_hash{{references ", $"}}, 'start', account, sku, s_t, NULL{{ofStart ", q#"}}
  FROM fates
  WHERE fate = 'open'
  UNION ALL             -- R3: a copied end knows its start
  SELECT CASE WHEN c.kind = 'start' AND c.payload_hash = v.s_payload OR c.kind = v.x_kind AND c.payload_hash = v.x_payload THEN 'duplicate' ELSE 'conflict' END,
         c.part, c.log_offset, {{ids "c."}}, c.id_hash{{references ", CASE WHEN c.side = 'end' AND v.s_off IS NOT NULL THEN v.$ ELSE c.$ END"}}, c.kind,
         CASE WHEN c.side = 'end' THEN v.account ELSE c.account END, CASE WHEN c.side = 'end' THEN v.sku ELSE c.sku END, c.t, c.status{{all ", c.q#"}}
  FROM ranked AS c
  JOIN lives AS v ON {{same "c" "v"}}
  WHERE c.nth > 1
),
verdicts AS (           -- R9: what no filter keeps out is counted
  SELECT CASE WHEN filter IS NOT NULL THEN 'filtered' ELSE 'counted' END AS verdict,
         manner, filter, 0 AS door, 1 AS requests,
         part, off, x_part, x_off, {{ids ""}}, id_hash{{references ", $"}}, kind, account, sku, {{tier "q"}} AS tier, t, window_end, status, 0 AS judged, CAST(NULL AS BIGINT) AS timer{{all ", q#"}}
  FROM weighed
  UNION ALL
  SELECT verdict, 'alone', NULL, 0, 0,
         part, off, NULL, NULL, {{ids ""}}, id_hash{{references ", $"}}, kind, account, sku, {{tier "q"}}, t, {{windowEnd "t"}}, status, 0, NULL{{all ", q#"}}
  FROM single
)
