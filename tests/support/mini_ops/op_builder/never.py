class NeverBuilder:
    BUILD_VAR = "DS_BUILD_NEVER"
    NAME = "never"

    @staticmethod
    def is_compatible():
        return False
