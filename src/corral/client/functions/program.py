"""The program in the job of a call: loads function and arguments, calls the function, and writes the result to a file.

The source of this module is sent as `python -c SOURCE CALL …`, so that the job's environment needs only Python and
cloudpickle, not corral. It is written for older versions of Python than the rest.
"""

import base64
import os
import sys
import traceback
import zlib

RESULT = "result.pickle"


def main(pieces):  # type: ignore[no-untyped-def]
    import cloudpickle

    call = cloudpickle.loads(zlib.decompress(base64.b85decode("".join(pieces))))
    if call["python"] != list(sys.version_info[:2]):
        sent, here = (f"{major}.{minor}" for major, minor in (call["python"], sys.version_info[:2]))
        sys.exit(f"The function was sent from Python {sent}, and this job runs Python {here}.")
    arguments = call["calls"][int(os.environ.get("CORRAL_ARRAY_INDEX", "0"))]
    failed = False
    try:
        args, keywords = cloudpickle.loads(arguments)
        result = {"value": cloudpickle.loads(call["function"])(*args, **keywords)}
    except Exception as error:  # noqa: BLE001 the function's own, which is the result
        traceback.print_exc()
        failed = True
        result = {"error": error, "traceback": traceback.format_exc()}
    try:
        content = cloudpickle.dumps(result)
    except Exception as error:  # noqa: BLE001 whatever the result's classes raise
        failed = True
        reason = TypeError(f"The result cannot be pickled: {error}")
        content = cloudpickle.dumps({"error": reason, "traceback": traceback.format_exc()})
    # A gang has one result: that of its first instance.
    if os.environ.get("NODE_RANK", "0") == "0":
        path = os.path.join(os.environ["CORRAL_OUTPUT_DIR"], RESULT)
        with open(path + ".part", "wb") as file:
            file.write(content)
        os.replace(path + ".part", path)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])  # type: ignore[no-untyped-call]
