"""A certificate authority, and certificates that it signs, made with openssl."""
import subprocess

OPENSSL_EXTENSIONS = """
basicConstraints=CA:FALSE
subjectAltName={names}
extendedKeyUsage=serverAuth,clientAuth
"""


class Certificates:
    def __init__(self, folder, name="test authority"):
        self.folder = folder
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                     "ca.key", "-out", "ca.pem", "-subj", f"/CN={name}", "-days", "2")

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True)

    def sign(self, name, names):
        (self.folder / f"{name}.ext").write_text(OPENSSL_EXTENSIONS.format(names=names))
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                     f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext")

    def __getitem__(self, name):
        return str(self.folder / name)
