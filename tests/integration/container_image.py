"""An image for `lockstep run --container`: a root folder with busybox alone."""
import shutil

APPLETS = "sh cat sleep id ls touch echo env kill true".split()


def make(root):
    for name in ("bin", "etc", "opt", "var/tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for name in APPLETS:
        (root / "bin" / name).symlink_to("busybox")
    # apptainer warns about an image without these, and without /var/tmp.
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "opt/marker").write_text("in the image\n")
    root.chmod(0o755)
    return root
