//! What stands below the flags in `kvik help copy`.

pub(super) const AFTER: &str = "\
Files:
  DST.kvik-part   the copy while it is made, locked against a second kvik and readable by you alone
                  until it is complete. Ctrl-C and SIGTERM leave it there and name it; the next copy
                  to DST removes it and begins anew with a new file, unless it is from a URL. Any
                  error removes it, above all a source that changed, a difference found by --verify,
                  and a full disk, but not a network that fails.
  DST.kvik-journal
                  beside the part of a copy from a URL: which version of SRC it is of, which pieces
                  are written, and their checksums; of the URL it has a digest alone. Where the two
                  are left, by Ctrl-C, SIGTERM, a crash or a network that fails, the same command
                  goes on with them if SRC is of that version still (a strong ETag, or a time of
                  change that was a minute old) and each piece still has its checksum. Else it says
                  why not and begins anew. To give a copy up, remove both files.
  DST             is a new file, also where it replaces one: owner and hard links of the old one do
                  not carry over. A symbolic link is followed; what is no regular file (a device, a
                  FIFO) is refused. Where others may rename files in the directory of DST, choose
                  another directory: they may replace the copy at any time.

Signals:
  Ctrl-C and SIGTERM stop the copy between two pieces. If nothing comes to its end within a second,
  as a read of /proc/kmsg that waits for the next message, kvik ends without waiting, and without
  the figures of --stats. A second signal within that second changes nothing.

Exit codes:
  0 copied, 1 I/O error, 2 wrong arguments (also: SRC and DST are one file, SRC is a directory, a
  pipe or a character device), 3 SRC or the directory of DST missing, 4 permission denied, 5 SRC changed or --verify found
  a difference, 6 disk full, 7 --via-gpu without a GPU or DST is a URL, 130 Ctrl-C, 143 SIGTERM; `kvik --help` has the whole table.

Examples:
  kvik copy data.bin /mnt/fast/
  kvik copy https://example.org/data.bin .        # once more, to go on after Ctrl-C
  kvik copy --verify --threads 8 data.bin backup.bin
  kvik copy --via-gpu data.bin copy.bin
  kvik copy --stats=json --quiet data.bin copy.bin | jq .bytes_read";
