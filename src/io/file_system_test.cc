#include "io/file_system.h"

#include <gtest/gtest.h>

namespace lockstep::io {
namespace {

TEST(FileSystem, DisksAreLocalAndWhatOtherHostsMayMountIsNot) {
  for (const std::uint32_t local : {0xef53U, 0x58465342U, 0x9123683eU, 0x01021994U, 0x794c7630U})
    EXPECT_TRUE(is_local_type(local)) << local;
  // NFS, SMB, FUSE, Lustre, GPFS, Ceph, BeeGFS
  for (const std::uint32_t shared :
       {0x6969U, 0xff534d42U, 0x65735546U, 0x0bd00bd0U, 0x47504653U, 0x00c36400U, 0x19830326U, 0U})
    EXPECT_FALSE(is_local_type(shared)) << shared;
}

TEST(FileSystem, WhatIsNotThereIsNotLocal) {
  EXPECT_TRUE(is_local("/dev/shm"));
  EXPECT_FALSE(is_local("/dev/shm/no/such/folder"));
  EXPECT_FALSE(is_local("/proc"));
}

TEST(FileSystem, DevicesOfLocalFileSystemsAreKnown) {
  EXPECT_EQ(local_devices("22 27 0:21 / /proc rw - proc proc rw\n"
                          "27 1 254:0 / / rw,noatime shared:1 - ext4 /dev/vda rw\n"
                          "28 27 0:55 / / rw - overlay overlay rw,lowerdir=/a\n"
                          "29 27 259:300 /a\\040b /x rw shared:1 master:2 - xfs /dev/nvme0n1 rw\n"
                          "30 27 0:60 / /home rw - nfs4 server:/home rw,vers=4.2\n"
                          "31 27 0:61 / /w rw - fuse.sshfs x rw\n"),
            (Devices{"fe:00", "00:37", "103:12c"}));
  for (const char* text :
       {"", "\n\n", "1 2 - ext4", "1 2 3 - ext4 x", "1 2 a:b - ext4 x", "1 2 3:4 -"})
    EXPECT_TRUE(local_devices(text).empty()) << text;
}

}  // namespace
}  // namespace lockstep::io
