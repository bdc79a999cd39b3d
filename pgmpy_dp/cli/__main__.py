from pgmpy_dp.cli import main

main(prog_name="pgmpy-dp")
