#include "io/file_system.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

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

TEST(FileSystem, TheMountsOnTheWaySayWhereAPathLies) {
  const auto mounts = mounts_of(
      "27 1 254:0 / / rw,noatime shared:1 - ext4 /dev/vda rw\n"
      "30 27 0:60 / /home rw - nfs4 server:/home rw,vers=4.2\n"
      "31 30 0:61 / /home/a\\040b rw - xfs /dev/vdb rw\n"
      "32 27 0:62 / /auto rw - autofs x rw\n"
      "33 27 0:63 / /twice rw - nfs server:/ rw\n"
      "34 33 0:64 / /twice rw - tmpfs x rw\n"
      "35 27 0:65 / /short -\n\n-\n"
      "36 27 0:66 / /data/scratch rw - xfs /dev/vdc rw\n"
      "37 27 0:67 / /data rw - nfs server:/data rw\n"  // hides the one before
      "38 37 0:68 / /data/fast rw - xfs /dev/vdd rw\n"
      "39 39 0:69 / /self rw - nfs server:/ rw\n");
  for (const char* local : {"", "/", "/homes", "/root/x", "/home/a b", "/home/a b/c", "/twice/x",
                            "/self", "/data/fast/x"})
    EXPECT_TRUE(is_on_local(mounts, local)) << local;
  for (const char* shared : {"/home", "/home/me", "/home/a", "/home/a b2", "/auto/me", "/data",
                             "/data/scratch", "/data/scratch/x"})
    EXPECT_FALSE(is_on_local(mounts, shared)) << shared;
  EXPECT_FALSE(is_on_local({}, "/"));
  EXPECT_TRUE(is_on_local(mounts_of("1 1 0:2 / / rw - rootfs rootfs rw"), "/tmp/x"));
  const auto without_root = mounts_of("30 27 0:60 / /home rw - ext4 /dev/vda rw");
  EXPECT_FALSE(is_on_local(without_root, "/root"));
  EXPECT_TRUE(is_on_local(without_root, "/home/me"));
}

TEST(FileSystem, LinksAreFollowedOnLocalFileSystemsOnly) {
  namespace fs = std::filesystem;
  char base[] = "/tmp/file_system_XXXXXX";
  ASSERT_NE(mkdtemp(base), nullptr);
  const fs::path folder = base;
  fs::create_directory(folder / "real");
  fs::create_directory_symlink("../" / folder.filename() / "real", folder / "relative");
  fs::create_directory_symlink(folder / "relative", folder / "absolute");
  fs::create_directory_symlink("/proc/self", folder / "shared");
  fs::create_directory_symlink("round", folder / "round");
  for (const char* local : {"real", "real/new/folder", "relative/x", "absolute/./x", "none/../x"})
    EXPECT_TRUE(is_local_without_asking(folder / local)) << local;
  for (const char* shared : {"shared", "shared/x", "round", "round/x", "absolute/../shared"})
    EXPECT_FALSE(is_local_without_asking(folder / shared)) << shared;
  EXPECT_FALSE(is_local_without_asking("/proc/1/cwd"));
  EXPECT_FALSE(is_local_without_asking("dev/shm"));
  EXPECT_FALSE(is_local_without_asking(""));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::io
