"""What each instruction does: rules, values, and the rows it leaves. Both API generations call these with a destination."""
