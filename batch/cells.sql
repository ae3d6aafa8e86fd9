-- R9: cells of what is counted in the rows that were asked for; every other verdict, and what is counted elsewhere, is only counted, under the
-- keys null. Null is also what is nearly always so: the verdict of a cell, and in a cell the manner {{usual}}. manner says how many records
-- a request took with it: two where it ended or was superseded, one where it was abandoned or is alone; a cell may come in several rows, one
-- for each. set_hash comes back as the sums of two halves, hash_hi * 2^32 + hash_lo mod 2^64, put together by the reader, because no engine
-- has a sum that wraps. A sum past 64 bits is an error.
SELECT verdict, manner, account, window_end, sku, {{if tiers}}tier{{else}}0 AS tier{{end}},
       CAST(count(*) AS BIGINT) AS requests,
       CAST(sum(CAST((id_hash - mod(id_hash, 4294967296)) / 4294967296 AS BIGINT)) AS BIGINT) AS hash_hi,
       CAST(sum(mod(id_hash, 4294967296)) AS BIGINT) AS hash_lo{{all ", CAST(sum(q#) AS BIGINT) AS $"}}
FROM (
  SELECT CASE WHEN wanted = 0 THEN verdict END AS verdict, CASE WHEN wanted = 0 OR manner <> '{{usual}}' THEN manner END AS manner,
         CASE WHEN wanted = 1 THEN account END AS account, CASE WHEN wanted = 1 THEN window_end END AS window_end,
         CASE WHEN wanted = 1 THEN sku END AS sku{{if tiers}}, CASE WHEN wanted = 1 THEN tier END AS tier{{end}},
         CASE WHEN wanted = 1 THEN id_hash END AS id_hash{{all ", CASE WHEN wanted = 1 THEN q# END AS q#"}}
  FROM (SELECT v.*, CASE WHEN verdict = 'counted' AND {{wanted}} THEN 1 ELSE 0 END AS wanted FROM verdicts AS v) AS w
) AS c
GROUP BY verdict, manner, account, window_end, sku{{if tiers}}, tier{{end}}
