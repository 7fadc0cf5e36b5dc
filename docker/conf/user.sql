-- The tests' user; not in the binlog, so that the log begins with what a test does.
SET sql_log_bin = 0;
CREATE USER 'historian'@'%' IDENTIFIED BY 'historian';
GRANT ALL ON *.* TO 'historian'@'%' WITH GRANT OPTION;
