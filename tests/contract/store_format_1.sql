CREATE TABLE historian_facts (
	name VARCHAR(255) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "historian_facts" VALUES('schema_format','1');
INSERT INTO "historian_facts" VALUES('generation','bf649bad-d6f6-4408-959d-e16de549e38c');
INSERT INTO "historian_facts" VALUES('connector','539cc5dd-54f1-45f5-ac3a-b1cce93fec95 shop');
INSERT INTO "historian_facts" VALUES('resolved','{"flavor":"mysql","gtids":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-9,bbbbbbbb-71ca-11e1-9e33-c80aa9429562:1-2","file":"binlog.000001","offset":9000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"}');
CREATE TABLE historian_gaps (
	number INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "historian_gaps" VALUES(1,'{"start":{"flavor":"mysql","gtids":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-6","file":"binlog.000001","offset":6000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"end":{"flavor":"mysql","gtids":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-7","file":"binlog.000001","offset":7000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"reason":"purged"}');
CREATE TABLE historian_leases (
	name VARCHAR(255) NOT NULL, 
	owner TEXT NOT NULL, 
	token VARCHAR(255) NOT NULL, 
	expires_s FLOAT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE historian_plans (
	number BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "historian_plans" VALUES(1,'{"number":1,"previous":0,"connector":"c","start":{"flavor":"mysql","gtids":"","file":"binlog.000001","offset":4,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"end":{"flavor":"mysql","gtids":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-5","file":"binlog.000001","offset":5000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"ranges":[],"tables":[{"table_id":1,"versions":[{"version":1,"place":null,"edits":[],"snapshot":"b1ca287f3fadc2f9b822431a2f16cd057064ebffe020bd183e5f2bdbe5acd2bd","segment":0,"statement":"","event_time_us":0}],"quarantine":null}],"version":2,"system_time_us":1,"revision":"r","format":1}');
CREATE TABLE historian_quarantines (
	table_id BIGINT NOT NULL, 
	database_name VARCHAR(255) NOT NULL, 
	table_name VARCHAR(255) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (table_id, database_name, table_name)
);
CREATE TABLE historian_snapshots (
	digest VARCHAR(255) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "historian_snapshots" VALUES('b1ca287f3fadc2f9b822431a2f16cd057064ebffe020bd183e5f2bdbe5acd2bd','{"table_id":1,"name":["shop","t"],"columns":[{"id":1,"name":"a","type":{"name":"int","unsigned":false,"zerofill":false,"length":null,"precision":null,"scale":null,"fraction":0,"members":[],"charset":null,"collation":null},"nullable":true,"default":null,"default_is_expression":false,"on_update":null,"auto_increment":false,"generated":null,"generation_expression":null,"invisible":false,"initial":null,"initial_known":true}],"primary_key":[],"unique_keys":[],"other_keys":[],"charset":"utf8mb4","collation":"utf8mb4_0900_ai_ci"}');
CREATE TABLE historian_streams (
	name VARCHAR(255) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE historian_timeline (
	number BIGINT NOT NULL, 
	place VARCHAR(255), 
	body TEXT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (place)
);
INSERT INTO "historian_timeline" VALUES(1,NULL,'{"number":1,"place":null,"position":{"flavor":"mysql","gtids":"","file":"binlog.000001","offset":4,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"edits":[{"database":{"name":"shop","charset":"latin1","collation":"latin1_swedish_ci"},"kind":"set_database"},{"snapshot":{"table_id":1,"name":["shop","t"],"columns":[{"id":1,"name":"a","type":{"name":"int","unsigned":false,"zerofill":false,"length":null,"precision":null,"scale":null,"fraction":0,"members":[],"charset":null,"collation":null},"nullable":true,"default":null,"default_is_expression":false,"on_update":null,"auto_increment":false,"generated":null,"generation_expression":null,"invisible":false,"initial":null,"initial_known":true},{"id":2,"name":"b","type":{"name":"int","unsigned":false,"zerofill":false,"length":null,"precision":null,"scale":null,"fraction":0,"members":[],"charset":null,"collation":null},"nullable":true,"default":null,"default_is_expression":false,"on_update":null,"auto_increment":false,"generated":null,"generation_expression":null,"invisible":false,"initial":null,"initial_known":true}],"primary_key":[1],"unique_keys":[],"other_keys":[],"charset":"utf8mb4","collation":"utf8mb4_0900_ai_ci"},"kind":"create_table"},{"snapshot":{"table_id":2,"name":["shop","u"],"columns":[{"id":3,"name":"c","type":{"name":"int","unsigned":false,"zerofill":false,"length":null,"precision":null,"scale":null,"fraction":0,"members":[],"charset":null,"collation":null},"nullable":true,"default":null,"default_is_expression":false,"on_update":null,"auto_increment":false,"generated":null,"generation_expression":null,"invisible":false,"initial":null,"initial_known":true}],"primary_key":[],"unique_keys":[],"other_keys":[],"charset":"utf8mb4","collation":"utf8mb4_0900_ai_ci"},"kind":"create_table"}],"statement":"","database":"","event_time_us":0,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"}');
INSERT INTO "historian_timeline" VALUES(2,'aaaaaaaa-71ca-11e1-9e33-c80aa9429562:2/1','{"number":2,"place":{"gtid":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562:2","file":"binlog.000001","offset":2000,"ordinal":1},"position":{"flavor":"mysql","gtids":"","file":"binlog.000001","offset":1900,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"edits":[{"table":["shop","t"],"column":{"id":4,"name":"n","type":{"name":"bigint","unsigned":false,"zerofill":false,"length":null,"precision":null,"scale":null,"fraction":0,"members":[],"charset":null,"collation":null},"nullable":false,"default":null,"default_is_expression":false,"on_update":null,"auto_increment":false,"generated":null,"generation_expression":null,"invisible":false,"initial":"7","initial_known":true},"after":1,"kind":"add_column"}],"statement":"statement 2","database":"shop","event_time_us":2000000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"}');
INSERT INTO "historian_timeline" VALUES(3,'aaaaaaaa-71ca-11e1-9e33-c80aa9429562:3/1','{"number":3,"place":{"gtid":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562:3","file":"binlog.000001","offset":3000,"ordinal":1},"position":{"flavor":"mysql","gtids":"","file":"binlog.000001","offset":2900,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"edits":[{"table":["shop","t"],"table_id":1,"new":["shop","s"],"kind":"rename_table"},{"table":["shop","u"],"table_id":2,"new":["shop","t"],"kind":"rename_table"}],"statement":"statement 3","database":"shop","event_time_us":3000000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"}');
INSERT INTO "historian_timeline" VALUES(4,'bbbbbbbb-71ca-11e1-9e33-c80aa9429562:1/1','{"number":4,"place":{"gtid":"bbbbbbbb-71ca-11e1-9e33-c80aa9429562:1","file":"binlog.000001","offset":4000,"ordinal":1},"position":{"flavor":"mysql","gtids":"","file":"binlog.000001","offset":3900,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"edits":[{"table":["shop","t"],"reason":"nicht verstanden: ü","kind":"forget_table"}],"statement":"statement 4","database":"shop","event_time_us":4000000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"}');
INSERT INTO "historian_timeline" VALUES(5,'aaaaaaaa-71ca-11e1-9e33-c80aa9429562/binlog.000001:5000','{"number":5,"place":{"gtid":"","file":"binlog.000001","offset":5000,"ordinal":3},"position":{"flavor":"mysql","gtids":"","file":"binlog.000001","offset":4900,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"},"edits":[{"table":["shop","s"],"table_id":1,"kind":"drop_table"}],"statement":"statement 5","database":"shop","event_time_us":5000000,"server":"aaaaaaaa-71ca-11e1-9e33-c80aa9429562"}');
CREATE TABLE historian_zero_dates (
	"plan" BIGINT NOT NULL, 
	table_id BIGINT NOT NULL, 
	column_id BIGINT NOT NULL, 
	amount BIGINT NOT NULL, 
	PRIMARY KEY ("plan", table_id, column_id)
);
