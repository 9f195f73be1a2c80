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

}  // namespace
}  // namespace lockstep::io
